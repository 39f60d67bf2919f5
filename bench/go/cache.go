package main

import (
	"context"
	"flag"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// settings are the flags that both controllers take.
type settings struct {
	kubeconfig     string
	http1          bool
	readYourWrites bool
	compareStatus  bool
	apply          bool
	workers        int
}

func (s *settings) flags(f *flag.FlagSet) {
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "how to reach the server")
	f.BoolVar(&s.http1, "http1", false, "HTTP/1.1 instead of HTTP/2")
	f.BoolVar(&s.readYourWrites, "read-your-writes", false, "reads wait until the cache has seen our writes")
	f.BoolVar(&s.apply, "apply", false, "write ConfigMaps by server-side apply")
	f.BoolVar(&s.compareStatus, "compare-status", false, "write a status only when it differs from the cache's")
	f.IntVar(&s.workers, "workers", 8, "reconciles at the same time")
}

// workload is what the generator was told to serve.
type workload struct {
	objects   int
	events    int
	lastRound int64
	version   int
}

func (w *workload) flags(f *flag.FlagSet) {
	f.IntVar(&w.objects, "objects", 0, "how many objects there are")
	f.IntVar(&w.events, "events", 0, "how many events will come")
	f.Int64Var(&w.lastRound, "last-round", 0, "the round in which the events end")
	f.IntVar(&w.version, "version", 0, "resource version of the list")
}

// manager is one without limits of its own and without servers, as nothing here asks it anything.
func (s *settings) manager() (ctrl.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // as controller-runtime's own loader sets it
	if s.http1 {
		config.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	addWidgets(scheme)
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{
			Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &s.readYourWrites},
		},
	})
}

// followWidgets reconciles every Widget by reading it, and says when it has seen each of them
// first, and each of them in its last round.
func followWidgets(ctx context.Context, args []string) error {
	var s settings
	var work workload
	parse("cache", args, func(f *flag.FlagSet) {
		s.flags(f)
		work.flags(f)
	})
	mgr, err := s.manager()
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: s.workers}).
		Complete(&follower{
			Client: mgr.GetClient(), workload: work,
			known: map[types.NamespacedName]bool{}, done: map[types.NamespacedName]bool{},
		})
	if err != nil {
		return err
	}
	return mgr.Start(untilInputEnds(ctx))
}

type follower struct {
	client.Client
	workload

	mu         sync.Mutex
	reconciled int
	known      map[types.NamespacedName]bool
	done       map[types.NamespacedName]bool
}

func (f *follower) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := f.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reconciled++
	if len(f.known) < f.objects {
		f.known[req.NamespacedName] = true
		if len(f.known) == f.objects {
			mark("synced", f.reconciled)
			f.reconciled = 0
		}
	}
	if widget.Spec.Round == f.lastRound {
		f.done[req.NamespacedName] = true
		if len(f.done) == f.objects {
			mark("done", f.reconciled)
		}
	}
	return ctrl.Result{}, nil
}
