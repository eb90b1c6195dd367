package locallambda

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"sync"
)

const (
	// maxLine is the length in bytes at which a line is cut, that of the largest
	// CloudWatch log event when there was a limit of 256 KB.
	maxLine = 256 << 10

	// keptLines is the number of lines quoted when an environment cannot be
	// initialised.
	keptLines = 20

	// maxLog is the number of lines of one invocation that a Result has, so that
	// a function that prints without end does not fill the memory.
	maxLog = 10_000
)

// logs passes the lines of all environments on, one at a time.
type logs struct {
	mu   sync.Mutex
	emit func(env int, line string)
}

func newLogs(emit func(env int, line string)) *logs {
	if emit == nil {
		emit = func(env int, line string) { fmt.Fprintf(os.Stderr, "[%d] %s\n", env, line) }
	}
	return &logs{emit: emit}
}

// of returns what cuts the output of one process of that environment into lines.
func (l *logs) of(env int) *lines {
	return &lines{logs: l, env: env, mark: []byte("\x00" + rand.Text() + "\n"), marked: make(chan struct{}, 1)}
}

// lines cuts what one process prints into lines.
type lines struct {
	logs   *logs
	env    int
	mark   []byte        // no part of the output, and no line break of it
	marked chan struct{} // receives for each mark in the output

	mu      sync.Mutex
	partial []byte
	kept    []string

	record record
}

// record is what has been printed since an invocation was delivered. It has its
// own lock because the others are held while lines are passed on.
type record struct {
	mu    sync.Mutex
	lines []string
}

func (r *record) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < maxLog {
		r.lines = append(r.lines, line)
	}
}

// take returns the lines and forgets them.
func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

// Write accepts a piece of output. It never fails.
func (l *lines) Write(piece []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, piece...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte{'\n'})
		if !found {
			break
		}
		if before, marked := bytes.CutSuffix(l.partial[:len(line)+1], l.mark); marked {
			l.partial = slices.Concat(before, rest)
			l.marked <- struct{}{}
			continue
		}
		l.emit(bytes.TrimSuffix(line, []byte{'\r'}))
		l.partial = rest
	}
	if len(l.partial) > maxLine+len(l.mark) { // more than the first half of a mark
		l.emit(l.partial[:maxLine])
		l.partial = l.partial[maxLine:]
	}
	return len(piece), nil
}

// flush passes on a last line that has no line break.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.emit(l.partial)
		l.partial = nil
	}
}

func (l *lines) emit(line []byte) {
	text := string(line)
	l.kept = append(l.kept[max(0, len(l.kept)+1-keptLines):], text)
	l.record.add(text)
	l.logs.mu.Lock()
	defer l.logs.mu.Unlock()
	l.logs.emit(l.env, text)
}

// last returns the last lines printed.
func (l *lines) last() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}
