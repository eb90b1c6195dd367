package locallambda

import (
	"os"
	"sync"
)

// output is the pipe that a process prints into. It is read here rather than by
// os/exec so that everything printed before an answer can be read before the
// answer is passed on. To that end the platform keeps the writing end as well:
// a mark that it writes comes out after everything that the process had
// printed.
type output struct {
	lines       *lines
	read, write *os.File
	ended       chan struct{} // closed when pump has ended
	draining    sync.Mutex    // one mark at a time
}

// newOutput returns a pipe whose writing end is to be a process's stdout and
// stderr.
func newOutput(l *lines) (*output, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{lines: l, read: read, write: write, ended: make(chan struct{})}, nil
}

// pump passes on what is printed until the pipe is closed.
func (o *output) pump() {
	defer close(o.ended)
	_, _ = o.read.WriteTo(o.lines) // ends with the pipe
}

// drain returns when everything printed so far has been passed on.
func (o *output) drain() {
	o.draining.Lock()
	defer o.draining.Unlock()
	if _, err := o.write.Write(o.lines.mark); err != nil {
		return // closed
	}
	select {
	case <-o.lines.marked:
	case <-o.ended:
	}
}

// finish reads what an ended process has left in the pipe, and closes it. A
// process that it left behind may still have it open.
func (o *output) finish() {
	o.drain()
	o.close()
	<-o.ended
	o.lines.flush()
}

func (o *output) close() {
	_ = o.write.Close()
	_ = o.read.Close() // wakes pump
}
