package locallambda

import (
	"os"
	"sync"
	"time"
)

// pipeSize is how much a pipe holds at most, 64 KB on Linux and macOS: whatever
// was printed at some moment and is not read yet is within that.
const pipeSize = 64 << 10

// output is the pipe a process prints into. It is read here rather than by
// os/exec so that everything printed before an answer can be taken in before
// the answer is passed on.
type output struct {
	lines *lines
	read  *os.File
	ended chan struct{} // closed when nothing more will come

	mu sync.Mutex // held while a piece is read and passed on, which keeps the order
}

// newOutput returns a pipe for a process, and the end that is to be its stdout
// and stderr.
func newOutput(l *lines) (*output, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &output{lines: l, read: read, ended: make(chan struct{})}, write, nil
}

// pump passes on what is printed until all writers have closed the pipe, or it is
// closed here.
func (o *output) pump() {
	defer close(o.ended)
	conn, err := o.read.SyscallConn()
	for over := false; err == nil && !over; {
		err = conn.Read(func(fd uintptr) bool {
			n, more := o.take(fd)
			over = !more
			return n > 0 || over
		})
	}
}

// drain passes on what has been printed so far.
func (o *output) drain() {
	conn, err := o.read.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = conn.Control(func(fd uintptr) { // fails only where it is closed
		for taken := 0; taken < pipeSize; {
			n, more := o.take(fd)
			if n == 0 || !more {
				return
			}
			taken += n
		}
	})
}

// take reads what is there at the moment; more is false at the end.
func (o *output) take(fd uintptr) (n int, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	piece := make([]byte, 32<<10)
	n, more = readNow(fd, piece)
	_, _ = o.lines.Write(piece[:n]) // never fails
	return n, more
}

// finish takes in what an ended process has left in the pipe. A process of its own
// making that left its group can hold the pipe open; it is waited for no longer
// than drainLimit.
func (o *output) finish() {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	select {
	case <-o.ended:
	case <-limit.C:
	}
	_ = o.read.Close() // wakes pump; what it reports is the end of a pipe already done with
	<-o.ended
	o.lines.flush()
}
