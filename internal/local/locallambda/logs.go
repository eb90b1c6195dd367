package locallambda

import (
	"bytes"
	"fmt"
	"os"
	"sync"
)

const (
	// maxLine is the length in bytes at which an unfinished line is passed on,
	// that of the largest CloudWatch log event when there was a limit of 256 KB.
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

func (l *logs) of(env int) *lines { return &lines{logs: l, env: env} }

// lines cuts what one process prints into lines.
type lines struct {
	logs *logs
	env  int

	mu      sync.Mutex
	partial []byte
	kept    []string

	record record
}

// record is what has been printed since an invocation was delivered. It has a
// lock of its own because the others are held while lines are passed on.
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

// Write takes in a piece of output; it never fails.
func (l *lines) Write(piece []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, piece...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte{'\n'})
		if !found {
			break
		}
		l.emit(bytes.TrimSuffix(line, []byte{'\r'}))
		l.partial = rest
	}
	if len(l.partial) > maxLine {
		l.emit(l.partial)
		l.partial = nil
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
	if len(l.kept) == keptLines {
		l.kept = append(l.kept[:0], l.kept[1:]...)
	}
	l.kept = append(l.kept, text)
	l.record.add(text)
	l.logs.mu.Lock()
	defer l.logs.mu.Unlock()
	l.logs.emit(l.env, text)
}

// last returns the last lines printed.
func (l *lines) last() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.kept...)
}
