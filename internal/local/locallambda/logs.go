package locallambda

import (
	"bytes"
	"crypto/rand"
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
)

// MaxLog is the number of lines of one invocation that a Result has at most, so
// that a function that prints without end does not fill the memory.
const MaxLog = 10_000

// print passes a line on, one at a time.
func (p *Platform) print(env int, line string) {
	p.printing.Lock()
	defer p.printing.Unlock()
	p.cfg.Logs(env, line)
}

// lines cuts what one process prints into lines. Only one goroutine writes to
// it; the last lines may be read when it has ended.
type lines struct {
	print   func(line string)
	mark    []byte        // what output writes into the pipe; no process prints that
	marked  chan struct{} // receives for each mark in the output
	partial []byte
	last    []string

	mu  sync.Mutex
	log []string // what was printed since the last call of take
}

func newLines(print func(line string)) *lines {
	return &lines{print: print, mark: []byte("\x00" + rand.Text() + "\n"), marked: make(chan struct{}, 1)}
}

// take returns the lines since the last call of take. It does not wait while a
// line is passed on.
func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.log
	l.log = nil
	return log
}

// Write accepts a piece of output. It never fails.
func (l *lines) Write(piece []byte) (int, error) {
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
	if len(l.partial) > maxLine+len(l.mark) { // of which the last may begin a mark
		l.emit(l.partial[:maxLine])
		l.partial = l.partial[maxLine:]
	}
	return len(piece), nil
}

// flush passes on a last line that has no line break.
func (l *lines) flush() {
	if len(l.partial) > 0 {
		l.emit(l.partial)
		l.partial = nil
	}
}

func (l *lines) emit(line []byte) {
	text := string(line)
	l.last = append(l.last[max(0, len(l.last)+1-keptLines):], text)
	l.mu.Lock()
	if len(l.log) < MaxLog {
		l.log = append(l.log, text)
	}
	l.mu.Unlock()
	l.print(text)
}
