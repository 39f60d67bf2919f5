package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// drain lists and watches like the others, over HTTP/1.1, and only counts the lines: what it
// reaches is the most that any client can get from the generator.
func drain(ctx context.Context, args []string) error {
	var kubeconfig string
	var work workload
	parse("drain", args, func(f *flag.FlagSet) {
		f.StringVar(&kubeconfig, "kubeconfig", "", "how to reach the server")
		work.flags(f)
	})
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.TLSClientConfig.NextProtos = []string{"http/1.1"}
	ctx = untilInputEnds(ctx)
	path := fmt.Sprintf("/apis/%s/%s", groupVersion, plural)
	if _, err := countLines(ctx, config, path, 0); err != nil {
		return err
	}
	mark("synced", 0)
	seen, err := countLines(ctx, config, fmt.Sprintf("%s?watch=true&resourceVersion=%d", path, work.version), work.events)
	if err != nil {
		return err
	}
	mark("done", seen)
	<-ctx.Done()
	return nil
}

// countLines reads until it saw this many lines, or to the end if none are wanted.
func countLines(ctx context.Context, config *rest.Config, path string, wanted int) (int, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	seen, buffer := 0, make([]byte, 1<<16)
	for wanted == 0 || seen < wanted {
		n, err := response.Body.Read(buffer)
		seen += bytes.Count(buffer[:n], []byte("\n"))
		if err == io.EOF {
			break
		}
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}
