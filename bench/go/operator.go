package main

import (
	"context"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// runOperator keeps a ConfigMap for each Widget, written as this library's own tutorials do it: the
// status is written at the end of each reconcile, unless the comparing form is asked for. The applying
// form writes the ConfigMap by server-side apply, so that it owns its fields and leaves others alone.
func runOperator(ctx context.Context, args []string) error {
	var s settings
	parse("operator", args, s.flags)
	mgr, err := s.manager()
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: s.workers}).
		Complete(&operator{Client: mgr.GetClient(), compareStatus: s.compareStatus, apply: s.apply})
	if err != nil {
		return err
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		// Not WaitForCacheSync: it waits for the informers that there are, and the controller,
		// which starts beside this, may not have made its own yet. GetInformer waits for its sync.
		for _, kind := range []client.Object{&Widget{}, &corev1.ConfigMap{}} {
			if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil {
				return err
			}
		}
		mark("synced", 0)
		return nil
	}))
	if err != nil {
		return err
	}
	return mgr.Start(untilInputEnds(ctx))
}

type operator struct {
	client.Client
	compareStatus bool
	apply         bool
}

func (o *operator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := o.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	write := o.update
	if o.apply {
		write = o.applyChanged
	}
	data := map[string]string{
		"text":  widget.Spec.Text,
		"round": strconv.FormatInt(widget.Spec.Round, 10),
	}
	if err := write(ctx, &widget, data); err != nil {
		return ctrl.Result{}, err
	}
	status := WidgetStatus{ObservedGeneration: widget.Generation, ConfigMap: widget.Name, Phase: "Ready"}
	if o.compareStatus && widget.Status == status {
		return ctrl.Result{}, nil
	}
	widget.Status = status
	return ctrl.Result{}, o.Status().Update(ctx, &widget)
}

func (o *operator) update(ctx context.Context, widget *Widget, data map[string]string) error {
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name},
	}
	_, err := controllerutil.CreateOrUpdate(ctx, o.Client, configMap, func() error {
		configMap.Data = data
		return controllerutil.SetControllerReference(widget, configMap, o.Scheme())
	})
	return err
}

func (o *operator) applyChanged(ctx context.Context, widget *Widget, data map[string]string) error {
	var known corev1.ConfigMap
	err := o.Get(ctx, client.ObjectKeyFromObject(widget), &known)
	if client.IgnoreNotFound(err) != nil || (err == nil && maps.Equal(known.Data, data)) {
		return err
	}
	controller := metav1.NewControllerRef(widget, groupVersion.WithKind("Widget"))
	configMap := corev1ac.ConfigMap(widget.Name, widget.Namespace).
		WithData(data).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(controller.APIVersion).
			WithKind(controller.Kind).
			WithName(controller.Name).
			WithUID(controller.UID).
			WithController(true).
			WithBlockOwnerDeletion(true))
	return o.Apply(ctx, configMap, client.FieldOwner("bench-go"), client.ForceOwnership)
}
