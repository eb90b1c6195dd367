//go:build unix

package integration_test

import (
	"testing"
	"time"
)

// endingTimeout is of functions that shall reach it, and longTimeout of those
// that shall not. The emulators count whole seconds.
const (
	endingTimeout = 3 * time.Second
	longTimeout   = time.Minute
)

// maxResult is the largest result of a function, in bytes.
const maxResult = 6291556

// endsFirst is instead of an answer that nobody gets.
const endsFirst = "it ends with its process, maybe before it is invoked"

// played is how a bootstrap ends an invocation, and what the invoker gets.
type played struct {
	name    string
	begin   string
	order   order
	timeout time.Duration // zero: longTimeout
	want    string
	differs map[lane]string
	why     string // they differ
}

var plays = []played{
	{name: "returns", order: order{Do: "return"}, want: `"done"`},
	{name: "fails", order: order{Do: "fail"}, want: "errorString: no luck"},
	{name: "fails with its own type", order: order{Do: "fail, own"}, want: "ownError: no luck"},
	{name: "wraps", order: order{Do: "wrap"}, want: "wrapError: at work: no luck"},
	{name: "joins", order: order{Do: "join"}, want: "joinError: no luck\nEOF"},
	{name: "panics", order: order{Do: "panic"}, want: "string: no way"},
	{name: "panics with its own type", order: order{Do: "panic, own"}, want: "ownError: no way"},
	{name: "nil pointer", order: order{Do: "nil pointer"}, want: "errorString: runtime error: invalid memory address or nil pointer dereference"},
	{name: "returns no JSON", order: order{Do: "channel"}, want: "UnsupportedTypeError: json: unsupported type: chan int"},
	{
		name: "exits", order: order{Do: "exit 0"}, want: "Runtime.ExitError: Runtime exited without providing a reason",
		differs: map[lane]string{managedEmulator: "Runtime.ExitError: "}, why: "it sends no message",
	},
	{
		name: "exits with a status", order: order{Do: "exit 1"}, want: "Runtime.ExitError: Runtime exited with error: exit status 1",
		differs: map[lane]string{managedEmulator: "Runtime.ExitError: "}, why: "it sends no message",
	},
	{
		name: "is killed", order: order{Do: "kill"}, want: "Runtime.ExitError: Runtime exited with error: signal: killed",
		differs: map[lane]string{managedEmulator: "Runtime.ExitError: "}, why: "it sends no message",
	},
	{
		name: "ends its goroutine", order: order{Do: "goexit"}, timeout: endingTimeout, want: "Sandbox.Timedout: Task timed out after 3.00 seconds",
		differs: map[lane]string{emulator: "Task timed out after 3.00 seconds"}, why: "it sends no error document",
	},
	{
		name: "heeds no deadline", order: order{Do: "wait"}, timeout: endingTimeout, want: "Sandbox.Timedout: Task timed out after 3.00 seconds",
		differs: map[lane]string{emulator: "Task timed out after 3.00 seconds"}, why: "it sends no error document",
	},
	{name: "largest result", order: order{Do: "size", Size: maxResult}, want: "6291556 bytes"},
	{
		name: "result a byte larger", order: order{Do: "size", Size: maxResult + 1},
		want:    "Function.ResponseSizeTooLarge: Response payload size exceeded maximum allowed payload size (6291556 bytes).",
		differs: map[lane]string{managedEmulator: "Function.ResponseSizeTooLarge: "}, why: "it sends no message",
	},
	{name: "streams", order: order{Do: "stream", Size: 10}, want: "AAAAAAAAAA"},
	{
		name: "streams a byte more than fits", order: order{Do: "stream", Size: maxResult + 1}, // for an invoker who asks for no stream
		want:    "Function.ResponseSizeTooLarge: Response payload size exceeded maximum allowed payload size (6291556 bytes).",
		differs: map[lane]string{managedEmulator: "Function.ResponseSizeTooLarge: "}, why: "it sends no message",
	},
	{
		name: "fails in a stream", order: order{Do: "stream, fail"}, want: "ownError: dried up",
		differs: map[lane]string{emulator: "half"}, why: "it does not read the trailers of a stream",
	},
	{
		name: "exits at once", begin: "exit", want: "locallambda: environment 1 failed to initialise: the process ended (exit status 3) before it asked for an invocation",
		differs: map[lane]string{emulator: "", managedEmulator: endsFirst}, why: "ours starts before it is invoked, and says then why it cannot",
	},
	{
		name: "reports that it cannot begin", begin: "error", want: "locallambda: environment 1 failed to initialise: it reported Function.NoTable: no table",
		differs: map[lane]string{emulator: "Function.NoTable: no table", managedEmulator: endsFirst}, why: "ours starts before it is invoked, and says then why it cannot",
	},
}

// onEachLane runs a test on each lane at the same time.
func onEachLane(t *testing.T, test func(*testing.T, lane)) {
	for _, l := range lanes {
		t.Run(string(l), func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

// TestInvokersGetTheSame shows that who invokes a function gets the same on our
// Lambda as on AWS's emulator, however the function ends.
func TestInvokersGetTheSame(t *testing.T) {
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			onEachLane(t, func(t *testing.T, l lane) {
				want, different := p.differs[l]
				if !different {
					want = p.want
				} else if want == p.want || p.why == "" {
					t.Errorf("does not differ, or for no reason: %q", want)
				}
				if want == endsFirst {
					t.Skip(endsFirst)
				}
				timeout := longTimeout
				if p.timeout > 0 {
					timeout = p.timeout
				}
				s := newStage(t, l, p.begin, timeout)
				if got := s.invoke(p.order); got != want {
					t.Errorf("the invoker gets %q, want %q", got, want)
				}
				if p.begin != "" || l.managed() {
					return // what ends may still be there, or takes the emulator along
				}
				if got := s.invoke(order{Do: "return"}); got != `"done"` {
					t.Errorf("the next invoker gets %q", got)
				}
			})
		})
	}
}
