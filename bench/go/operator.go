package main

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// runOperator keeps a ConfigMap for each Widget, written as this library's own tutorials do it: the
// status is written at the end of each reconcile, unless the comparing form is asked for.
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
		Complete(&operator{Client: mgr.GetClient(), compareStatus: s.compareStatus})
	if err != nil {
		return err
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			mark("synced", 0)
		}
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
}

func (o *operator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := o.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, o.Client, configMap, func() error {
		configMap.Data = map[string]string{
			"text":  widget.Spec.Text,
			"round": strconv.FormatInt(widget.Spec.Round, 10),
		}
		return controllerutil.SetControllerReference(&widget, configMap, o.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	status := WidgetStatus{ObservedGeneration: widget.Generation, ConfigMap: configMap.Name, Phase: "Ready"}
	if o.compareStatus && widget.Status == status {
		return ctrl.Result{}, nil
	}
	widget.Status = status
	return ctrl.Result{}, o.Status().Update(ctx, &widget)
}
