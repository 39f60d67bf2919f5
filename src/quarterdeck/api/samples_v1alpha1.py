"""The kind of the sample operator: `samples.quarterdeck.dev/v1alpha1`."""

from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import AGE, CATEGORY, CustomResource, condition_column
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import number, text


class NoteSpec(Part):
    """The desired note."""

    text: Annotated[str, text(max_length=65536)]
    """The text of the note; it becomes the content of the ConfigMap."""


class NoteStatus(Part):
    """The state of the note."""

    observed_generation: Annotated[int | None, number(minimum=0)] = None
    """The `metadata.generation` that was last acted on."""

    conditions: Conditions = ()
    """The conditions of the note. The only type is Ready."""


class Note(TypedObject):
    """A text that the sample operator copies into a ConfigMap of the same name."""

    api_version: str = always("samples.quarterdeck.dev/v1alpha1")
    kind: str = always("Note")

    spec: NoteSpec
    """The desired note."""

    status: NoteStatus = NoteStatus()
    """The state of the note."""


NOTES = CustomResource(
    group="samples.quarterdeck.dev",
    categories=(CATEGORY,),
    version="v1alpha1",
    kind="Note",
    plural="notes",
    namespaced=True,
    type=Note,
    columns=(condition_column("Ready", "Whether the ConfigMap has the text of the note."), AGE),
)
