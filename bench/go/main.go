// The Go side of the benchmark, one program with a subcommand for each part:
//
//	replay    the load generator: a list and a watch stream, as fast as a client takes them
//	drain     reads that stream and throws it away: the most that the generator can give
//	cache     controller-runtime: informer, queue and a reconcile that writes nothing
//	operator  controller-runtime: the sample operator, a ConfigMap for each Widget
//
// Which objects there are, and what the figures mean, is decided by the Python side; here every
// part says on standard output when it reached a mark, and ends when standard input ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

var commands = map[string]func(context.Context, []string) error{
	"replay":   replay,
	"drain":    drain,
	"cache":    followWidgets,
	"operator": runOperator,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: bench replay|drain|cache|operator [flags]")
		os.Exit(2)
	}
	ctrl.SetLogger(logr.Discard())
	if err := commands[os.Args[1]](context.Background(), os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// parse reads the flags that define declares.
func parse(name string, args []string, define func(*flag.FlagSet)) {
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	define(flags)
	_ = flags.Parse(args) // ExitOnError: it does not return an error
}

// untilInputEnds is done when whoever started this process closes its standard input.
func untilInputEnds(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		// A part that does not stop by itself is not waited for.
		time.Sleep(2 * time.Second)
		os.Exit(0)
	}()
	return ctx
}
