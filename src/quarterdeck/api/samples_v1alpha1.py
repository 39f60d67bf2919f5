"""The kind of the sample operator: `samples.quarterdeck.dev/v1alpha1`."""

from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import AGE, CustomResource, condition_column
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import number, text


class NoteSpec(Part):
    """The note that is wanted."""

    text: Annotated[str, text(max_length=65536)]
    """What the note says; it becomes the content of the ConfigMap."""


class NoteStatus(Part):
    """What has become of the note."""

    observed_generation: Annotated[int | None, number(minimum=0)] = None
    """The `metadata.generation` that was last acted on."""

    conditions: Conditions = ()
    """The note's state, one condition per aspect. Known so far: Ready."""


class Note(TypedObject):
    """A text that is kept in a ConfigMap of the same name, to show how an operator is made."""

    api_version: str = always("samples.quarterdeck.dev/v1alpha1")
    kind: str = always("Note")

    spec: NoteSpec
    """The note that is wanted."""

    status: NoteStatus = NoteStatus()
    """What has become of the note."""


NOTES = CustomResource(
    group="samples.quarterdeck.dev",
    version="v1alpha1",
    kind="Note",
    plural="notes",
    namespaced=True,
    type=Note,
    columns=(condition_column("Ready", "Whether the ConfigMap says what the note says."), AGE),
)
