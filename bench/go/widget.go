package main

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kind that all parts of the benchmark work on; bench/widgets.py has its CRD.
var (
	groupVersion = schema.GroupVersion{Group: "bench.quarterdeck.dev", Version: "v1"}
	plural       = "widgets"
)

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Text      string            `json:"text"`
	Round     int64             `json:"round"`
	Settings  map[string]string `json:"settings,omitempty"`
	Endpoints []Endpoint        `json:"endpoints,omitempty"`
}

type Endpoint struct {
	Name string   `json:"name"`
	Host string   `json:"host"`
	Port int64    `json:"port"`
	Tags []string `json:"tags,omitempty"`
}

type WidgetStatus struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	ConfigMap          string `json:"configMap,omitempty"`
	Phase              string `json:"phase,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (w *Widget) DeepCopyInto(out *Widget) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Settings = maps.Clone(w.Spec.Settings)
	out.Spec.Endpoints = slices.Clone(w.Spec.Endpoints)
	for i := range out.Spec.Endpoints {
		out.Spec.Endpoints[i].Tags = slices.Clone(w.Spec.Endpoints[i].Tags)
	}
}

func (w *Widget) DeepCopyObject() runtime.Object {
	out := new(Widget)
	w.DeepCopyInto(out)
	return out
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: l.TypeMeta, Items: make([]Widget, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

func addWidgets(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
