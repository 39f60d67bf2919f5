package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// recording is what the generator serves: objects and watch events, one JSON text each, in the
// form in which a real API server sends them. The event at position i has the resource version
// version+1+i, so that a watch can start anywhere.
type recording struct {
	items   [][]byte
	events  [][]byte
	version int
	start   chan struct{} // closed when the events may flow
}

// replay serves a recording over TLS, with HTTP/2 for those who ask for it, through the same
// HTTP library and in the same portions as the API server: what waits is written together.
//
// It is a load generator and nothing else: it knows one resource, and forgets all writes. A real
// API server cannot produce events as fast as the clients here take them.
func replay(ctx context.Context, args []string) error {
	var items, events, kubeconfig string
	rec := recording{start: make(chan struct{})}
	parse("replay", args, func(f *flag.FlagSet) {
		f.StringVar(&items, "items", "", "file with the listed objects, one a line")
		f.StringVar(&events, "events", "", "file with the watch events, one a line")
		f.IntVar(&rec.version, "version", 0, "resource version of the list")
		f.StringVar(&kubeconfig, "kubeconfig", "", "where to write how to reach the server")
	})
	var err error
	if rec.items, err = lines(items); err != nil {
		return err
	}
	if rec.events, err = lines(events); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	certificate, authority, err := selfSigned()
	if err != nil {
		return err
	}
	if err := writeKubeconfig(kubeconfig, "https://"+listener.Addr().String(), authority); err != nil {
		return err
	}
	server := &http.Server{
		Handler:   rec.handler(),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:  log.New(os.Stderr, "", 0),
	}
	go rec.startOnRequest()
	mark("listening", len(rec.items))
	return server.ServeTLS(listener, "", "")
}

// startOnRequest lets the events flow at the first line on standard input, and ends the process
// at the end of it.
func (r *recording) startOnRequest() {
	input := bufio.NewScanner(os.Stdin)
	if input.Scan() {
		close(r.start)
	}
	for input.Scan() {
	}
	os.Exit(0)
}

func (r *recording) handler() http.Handler {
	group, version := groupVersion.Group, groupVersion.Version
	mux := http.NewServeMux()
	for path, document := range discovery() {
		serve := func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, document) }
		mux.HandleFunc("GET "+path, serve)
		mux.HandleFunc("GET "+path+"/{$}", serve)
	}
	mux.HandleFunc("GET /apis/"+group+"/"+version+"/"+plural, r.collection)
	mux.HandleFunc("GET /apis/"+group+"/"+version+"/namespaces/{namespace}/"+plural, r.collection)
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		answer(w, http.StatusNotFound, object{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": http.StatusNotFound,
			"reason": "NotFound", "message": "the generator does not serve " + req.URL.Path,
		})
	})
	return mux
}

func (r *recording) collection(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch strings.ToLower(req.URL.Query().Get("watch")) {
	case "true", "1":
		r.watch(w, req)
	default:
		r.list(w, req)
	}
}

// list answers with all objects, or with a page of them.
func (r *recording) list(w http.ResponseWriter, req *http.Request) {
	from, _ := strconv.Atoi(req.URL.Query().Get("continue"))
	from = min(from, len(r.items))
	to, next := len(r.items), ""
	if limit, _ := strconv.Atoi(req.URL.Query().Get("limit")); limit > 0 && from+limit < to {
		to = from + limit
		next = strconv.Itoa(to)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(out, `{"apiVersion":%q,"items":[`, groupVersion.String())
	for i, item := range r.items[from:to] {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(bytes.TrimSuffix(item, []byte("\n")))
	}
	fmt.Fprintf(out, `],"kind":"WidgetList","metadata":{"continue":%q,"resourceVersion":"%d"}}`+"\n", next, r.version)
	out.Flush()
}

// watch sends the objects first if asked to, then, once started, the events after the given
// version, and then stays open.
func (r *recording) watch(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	flush := w.(http.Flusher).Flush
	flush()
	after, _ := strconv.Atoi(query.Get("resourceVersion"))
	if after < r.version {
		for _, item := range r.items {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", bytes.TrimSuffix(item, []byte("\n")))
		}
		after = r.version
	}
	if query.Get("sendInitialEvents") == "true" {
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":"Widget","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"creationTimestamp":null,"resourceVersion":"%d"},"spec":{"round":0,"text":""}}}`+"\n", groupVersion.String(), after)
	}
	flush()
	mark("watched", after-r.version)
	select {
	case <-r.start:
	case <-req.Context().Done():
		return
	}
	mark("started", after-r.version)
	for _, event := range r.events[min(after-r.version, len(r.events)):] {
		if _, err := w.Write(event); err != nil {
			return
		}
	}
	flush()
	mark("sent", len(r.events))
	<-req.Context().Done()
}

type object = map[string]any

// discovery is what a client asks for before it knows where the resource is. Some look for
// resources of every cluster, too, and wait for them; nobody here uses those.
func discovery() map[string]object {
	documents := map[string]object{
		"/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.4", "platform": "linux/amd64"},
		"/api":     {"kind": "APIVersions", "versions": []string{"v1"}},
		"/api/v1": resources("v1",
			resource("namespaces", "namespace", "Namespace", false), resource("events", "event", "Event", true)),
	}
	var groups []object
	for served, only := range map[schema.GroupVersion]object{
		groupVersion: resource(plural, "widget", "Widget", true),
		{Group: "apiextensions.k8s.io", Version: "v1"}: resource(
			"customresourcedefinitions", "customresourcedefinition", "CustomResourceDefinition", false),
	} {
		version := object{"groupVersion": served.String(), "version": served.Version}
		group := object{"name": served.Group, "versions": []object{version}, "preferredVersion": version}
		groups = append(groups, group)
		documents["/apis/"+served.Group] = group
		documents["/apis/"+served.String()] = resources(served.String(), only)
	}
	documents["/apis"] = object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	return documents
}

func resources(groupVersion string, all ...object) object {
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": all}
}

func resource(plural, singular, kind string, namespaced bool) object {
	return object{
		"name": plural, "singularName": singular, "namespaced": namespaced, "kind": kind,
		"verbs": []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}
}

func answer(w http.ResponseWriter, code int, document object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(document)
}

// lines are the lines of a file, each with its newline.
func lines(path string) ([][]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := bytes.SplitAfter(content, []byte("\n"))
	return all[:len(all)-1], nil
}

// selfSigned is a certificate for the loopback address, and the same as the authority to trust.
func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "bench"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func writeKubeconfig(path, url string, authority []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["bench"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: authority}
	config.AuthInfos["bench"] = &clientcmdapi.AuthInfo{Token: "not-checked"}
	config.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "bench", Namespace: "bench"}
	config.CurrentContext = "bench"
	return clientcmd.WriteToFile(*config, path)
}
