package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

var marks sync.Mutex

// mark tells the Python side that something was reached: when, and what it cost so far.
func mark(name string, seen int) {
	at, cpu := time.Now(), cpuSeconds()
	line, err := json.Marshal(map[string]any{
		"mark": name,
		"at":   float64(at.UnixMicro()) / 1e6,
		"cpu":  cpu,
		"seen": seen,
	})
	if err != nil {
		panic(err)
	}
	marks.Lock()
	defer marks.Unlock()
	fmt.Fprintln(os.Stdout, string(line))
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}
