package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// entry is something that a function did: a line it printed, or a request.
type entry struct {
	line   map[string]any // a log line in JSON; nil for anything else
	at     time.Time      // of the log line, by the function's clock
	dynamo update         // an UpdateItem request that was answered
	status int            // its HTTP status
	put    string         // the path of an object that was written to S3
}

// journal is what happened, for all to wait on.
type journal struct {
	mu      sync.Mutex
	entries []entry
	printed []string
	changed chan struct{}
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

func (j *journal) add(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	close(j.changed)
	j.changed = make(chan struct{})
}

// log takes a line that an environment printed.
func (j *journal) log(env int, text string) {
	j.mu.Lock()
	j.printed = append(j.printed, fmt.Sprintf("[%d] %s", env, text))
	j.mu.Unlock()
	e := entry{}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // as they are printed
	if decoder.Decode(&e.line) != nil {
		return
	}
	stamp, _ := e.line["timestamp"].(string)
	e.at, _ = time.Parse(time.RFC3339Nano, stamp)
	j.add(e)
}

// await waits until the entries are as asked, or the context ends.
func (j *journal) await(ctx context.Context, ready func([]entry) bool) error {
	for {
		j.mu.Lock()
		ok, changed := ready(j.entries), j.changed
		j.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lines returns the log lines with that message, in the order of their times.
func (j *journal) lines(message string) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []entry
	for _, e := range j.entries {
		if e.line != nil && e.line["message"] == message {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b entry) int { return a.at.Compare(b.at) })
	return found
}

// logged is an effect that shows in a log line: the values of some attributes.
func logged(message string, attributes ...string) func(*journal) []string {
	return func(j *journal) []string {
		var effects []string
		for _, e := range j.lines(message) {
			text := ""
			for i, name := range attributes {
				if i > 0 {
					text += " "
				}
				text += fmt.Sprint(e.line[name])
			}
			effects = append(effects, text)
		}
		return effects
	}
}

// written is an effect that shows in S3: the paths that were written.
func written(j *journal) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var paths []string
	for _, e := range j.entries {
		if e.put != "" {
			paths = append(paths, e.put)
		}
	}
	return paths
}

// overlapping tells whether something began before what began earlier was done.
func (j *journal) overlapping(begin, end string) error {
	begun, done := j.lines(begin), j.lines(end)
	if len(begun) != len(done) {
		return fmt.Errorf("%q %d times, but %q %d times", begin, len(begun), end, len(done))
	}
	for i := 1; i < len(begun); i++ {
		if begun[i].at.Before(done[i-1].at) {
			return fmt.Errorf("%q at %v, before %q at %v", begin, begun[i].at, end, done[i-1].at)
		}
	}
	return nil
}
