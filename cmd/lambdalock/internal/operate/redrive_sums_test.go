package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deadletter"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// redriveTest is a dead-letter queue with messages that failed (m0, m1, …).
type redriveTest struct {
	*sqstest.SQS
	store   *memstore.Store
	command Redrive
}

func newRedriveTest(t *testing.T, failed, completed int) *redriveTest {
	t.Helper()
	f := &redriveTest{SQS: sqstest.New(t, "orders", "dlq"), store: memstore.New(), command: Redrive{Hide: time.Minute}}
	for i := range failed + completed {
		id := fmt.Sprint("m", i)
		f.Put("dlq", "orders", id, "", id)
		event := "x"
		if i >= failed {
			event = id
		}
		rowtest.Complete(t, f.store, lock.Key{Name: "sqs/" + id, Event: event}, nil)
	}
	return f
}

// run returns what was printed, and the error.
func (f *redriveTest) run(ctx context.Context, out io.Writer) (string, error) {
	q, err := deadletter.Open(ctx, f, "dlq", "", f.command.Hide)
	if err != nil {
		return "", err
	}
	var notes strings.Builder
	if out == nil {
		out = &notes
	}
	err = f.command.redrive(ctx, q, &deadletter.Judge{Store: f.store, Namespace: "orders"}, out, &notes, answering(nil, nil))
	return notes.String(), err
}

// TestRedriveDenied: the first request that is denied ends the run, and the
// sums say where the messages are. O3
func TestRedriveDenied(t *testing.T) {
	t.Parallel()
	for operation, c := range map[string]struct {
		skips     int // requests that are not denied
		completed int
		sums      string
		sent      int // to the other queue
		hidden    int
	}{
		"ReceiveMessage":               {sums: "0 deleted, 0 sent, 0 left. It ended early"},
		"GetQueueUrl of the other":     {skips: 1, sums: "0 deleted, 0 sent, 30 left. It ended early"},
		"SendMessageBatch":             {sums: "0 deleted, 0 sent, 30 left. It ended early"},
		"SendMessageBatch of several":  {skips: 1, sums: "0 deleted, 1 sent, 29 left. It ended early", sent: 1},
		"DeleteMessageBatch":           {sums: "0 deleted, 0 sent, 1 sent and still here, 29 left. It ended early", sent: 1},
		"DeleteMessageBatch first":     {completed: 12, sums: "0 deleted, 0 sent, 42 left. It ended early"},
		"ChangeMessageVisibilityBatch": {sums: "0 deleted, 30 sent, 0 left.", sent: 30},
	} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRedriveTest(t, 30, c.completed)
				denied, _, _ := strings.Cut(operation, " ")
				asked := 0
				f.Fault = func(o string, applied bool) error {
					if o != denied || applied {
						return nil
					}
					if asked++; asked <= c.skips {
						return nil
					}
					return sqstest.Denied("sqs:" + strings.TrimSuffix(o, "Batch"))
				}
				out, err := f.run(t.Context(), nil)
				if !strings.Contains(out, c.sums) {
					t.Errorf("it does not say %q:\n%s", c.sums, out)
				}
				if sent := len(f.Bodies("orders")); sent != c.sent || asked > c.skips+1 {
					t.Errorf("%d were sent, want %d; %d requests were denied", sent, c.sent, asked-c.skips)
				}
				if want := map[bool]int{true: 69, false: 0}[strings.Contains(c.sums, "early")]; status(trouble(err)) != want {
					t.Errorf("status %d, %v", status(trouble(err)), err)
				}
				if n := f.Hidden("dlq"); n != 0 {
					t.Errorf("%d messages are invisible", n)
				}
			})
		})
	}
}

// TestRedriveSumsAreRight: whatever fails, each message is counted once, where
// it is, has one line of JSON that says the same, and the status tells whether
// any stays.
func TestRedriveSumsAreRight(t *testing.T) {
	t.Parallel()
	sums := regexp.MustCompile(`(\d+) deleted, (\d+) sent, (?:(\d+) sent and still here, )?(?:(\d+) perhaps sent and still here, )?(\d+) left`)
	number := func(text string) (n int) {
		_, _ = fmt.Sscan(text, &n)
		return n
	}
	server := func(operation, id string) func(string, string) *types.BatchResultErrorEntry {
		return func(o, i string) *types.BatchResultErrorEntry {
			if o == operation && strings.HasSuffix(i, id) {
				return &types.BatchResultErrorEntry{Code: aws.String("InternalError")}
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		fail  func(operation, id string) *types.BatchResultErrorEntry
		fault func(operation string, applied bool) error
	}{
		"nothing":                     {},
		"some are not sent":           {fail: server("SendMessageBatch", "7")},
		"some are not deleted":        {fail: server("DeleteMessageBatch", "3")},
		"some stay invisible":         {fail: server("ChangeMessageVisibilityBatch", "1")},
		"no answer to a send":         {fault: lost("SendMessageBatch", 3)},
		"no answer to a deletion":     {fault: lost("DeleteMessageBatch", 3)},
		"no answer to the first send": {fault: lost("SendMessageBatch", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRedriveTest(t, 40, 20)
				if c.fail != nil {
					f.Fail = c.fail
				}
				if c.fault != nil {
					f.Fault = c.fault
				}
				f.command.JSON = true
				var lines strings.Builder
				out, err := f.run(t.Context(), &lines)
				m := sums.FindStringSubmatch(out)
				if m == nil {
					t.Fatal(out)
				}
				deleted, sent, both, perhaps, left := number(m[1]), number(m[2]), number(m[3]), number(m[4]), number(m[5])
				want := fmt.Sprint(map[string]int{"deleted": deleted, "sent": sent, "both": both, "perhaps": perhaps, "left": left})
				if got := fmt.Sprint(outcomes(t, lines.String())); got != want || (status(trouble(err)) == 0) != (both+perhaps+left == 0) {
					t.Errorf("status %d, the lines say %s:\n%s", status(trouble(err)), got, out)
				}
				atOther, here := len(f.Bodies("orders")), len(f.Bodies("dlq"))
				if sum := deleted + sent + both + perhaps + left; sum != 60 {
					t.Errorf("the sums are of %d messages, want 60:\n%s", sum, out)
				}
				if atOther < sent+both || atOther > sent+both+perhaps {
					t.Errorf("%d were sent:\n%s", atOther, out)
				}
				if here > both+perhaps+left || here < left+perhaps {
					t.Errorf("%d are here:\n%s", here, out)
				}
			})
		})
	}
}

// outcomes counts what lines of JSON say about one message each.
func outcomes(t *testing.T, lines string) map[string]int {
	t.Helper()
	n := map[string]int{"deleted": 0, "sent": 0, "both": 0, "perhaps": 0, "left": 0}
	for line := range strings.Lines(lines) {
		var d deadletter.Decision
		if err := json.Unmarshal([]byte(line), &d); err != nil || (d.To != "") != (d.Action == deadletter.Send) {
			t.Errorf("%v: %s", err, line)
		}
		switch {
		case d.Sent == deadletter.Perhaps:
			n["perhaps"]++
		case d.Done:
			n[map[string]string{deadletter.Delete: "deleted", deadletter.Send: "sent"}[d.Action]]++
		case d.Sent == deadletter.Yes:
			n["both"]++
		default:
			n["left"]++
		}
	}
	return n
}

// TestRedriveSendsOnce: a request that SQS refuses is about those messages of
// an earlier one that were not sent. The others are not sent again.
func TestRedriveSendsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRedriveTest(t, 11, 0) // the first is sent alone
		refused := false
		f.Fault = func(operation string, applied bool) error {
			if operation == "SendMessageBatch" && !applied && f.Requests[operation] == 3 {
				refused = true
				return &smithy.GenericAPIError{Code: "InvalidParameterValue", Fault: smithy.FaultClient}
			}
			return nil
		}
		failed := false
		f.Fail = func(operation, _ string) *types.BatchResultErrorEntry {
			if operation != "SendMessageBatch" || f.Requests[operation] != 2 || failed {
				return nil
			}
			failed = true
			return &types.BatchResultErrorEntry{Code: aws.String("InternalError")}
		}
		out, err := f.run(t.Context(), nil)
		if n := len(f.Bodies("orders")); n != 11 || !refused || err != nil || !strings.Contains(out, "0 deleted, 11 sent, 0 left.") {
			t.Errorf("%d messages are in the queue, want 11; %v\n%s", n, err, out)
		}
	})
}

// TestRedriveEndsInARequest: what SQS has taken is deleted, also if another
// message of the request ends the run.
func TestRedriveEndsInARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRedriveTest(t, 21, 0)
		f.Fail = func(operation, _ string) *types.BatchResultErrorEntry {
			if operation != "SendMessageBatch" || f.Requests[operation] != 2 || len(f.Bodies("orders")) != 5 {
				return nil
			}
			return &types.BatchResultErrorEntry{Code: aws.String("KMS.AccessDeniedException"), SenderFault: true}
		}
		out, err := f.run(t.Context(), nil)
		if status(trouble(err)) != 69 || !strings.Contains(out, "0 deleted, 5 sent, 16 left. It ended early") || len(f.Bodies("dlq")) != 16 {
			t.Errorf("%d are here; %v\n%s", len(f.Bodies("dlq")), err, out)
		}
	})
}

// lost loses the answer to the request of a number.
func lost(operation string, number int) func(string, bool) error {
	return func(o string, applied bool) error {
		if o == operation && applied {
			if number--; number == 0 {
				return errors.New("connection reset by peer")
			}
		}
		return nil
	}
}

// TestRedriveHidesForASecond: it ends although messages that stay come back
// faster than the queue can be read. O4
func TestRedriveHidesForASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRedriveTest(t, 0, 0)
		f.command.Hide = time.Second
		for i := range 2000 {
			f.Put("dlq", "orders", fmt.Sprint("unknown", i), "", "?")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble
		defer cancel()
		out, err := f.run(ctx, io.Discard)
		if ctx.Err() != nil || status(err) != 1 || !strings.Contains(out, "left. Those that stay came back before all were seen: give a longer --hide.") {
			t.Errorf("%v\n%s", err, out)
		}
		if n := f.Hidden("dlq"); n > 0 {
			t.Errorf("%d messages are invisible", n)
		}
	})
}

// TestRedriveShowsWhatStays: also if SQS fails a part, if it fails for a
// while, and if nobody reads what is printed. O4
func TestRedriveShowsWhatStays(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *redriveTest) io.Writer{
		"a part fails once": func(f *redriveTest) io.Writer {
			failed := map[string]bool{}
			f.Fail = func(operation, id string) *types.BatchResultErrorEntry {
				if operation != "ChangeMessageVisibilityBatch" || failed[id] || id[len(id)-1]%2 == 0 {
					return nil
				}
				failed[id] = true
				return &types.BatchResultErrorEntry{Code: aws.String("InternalError")}
			}
			return nil
		},
		"a request fails once": func(f *redriveTest) io.Writer {
			once := false
			f.Fault = func(operation string, _ bool) error {
				if operation != "ChangeMessageVisibilityBatch" || once {
					return nil
				}
				once = true
				return errors.New("connection refused")
			}
			return nil
		},
		"nobody reads": func(*redriveTest) io.Writer { return closed{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRedriveTest(t, 0, 0)
				for i := range 35 {
					f.Put("dlq", "orders", fmt.Sprint("unknown", i), "", "?")
				}
				out, err := f.run(t.Context(), change(f))
				if err == nil || !strings.Contains(out, "35 left") {
					t.Errorf("%v\n%s", err, out)
				}
				if n := f.Hidden("dlq"); n > 0 {
					t.Errorf("%d messages are invisible", n)
				}
			})
		})
	}
}

// closed is a pipe without a reader.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestRedriveLargeMessages: a request has no more bytes than SQS takes, and one
// message that SQS refuses does not keep the others here.
func TestRedriveLargeMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRedriveTest(t, 0, 0)
		f.command.Unknown, f.Unsendable = true, strings.Repeat("x", 1<<20-1)
		for i, size := range []int{900 << 10, 300 << 10, 100 << 10, len(f.Unsendable), 200 << 10, 100 << 10, 1 << 20, 10} {
			f.Put("dlq", "orders", fmt.Sprint("m", i), "", strings.Repeat("x", size))
		}
		q, err := deadletter.Open(t.Context(), f, "dlq", "", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var notes strings.Builder
		err = f.command.redrive(t.Context(), q, &deadletter.Judge{Store: f.store, Unknown: true}, io.Discard, &notes, answering(nil, nil))
		if n := f.Requests["SendMessageBatch"]; n != 4 || status(err) != 1 || !strings.Contains(notes.String(), "0 deleted, 7 sent, 1 left.") {
			t.Errorf("%d requests, want 4 as full as they may be; %v\n%s", n, err, notes.String())
		}
	})
}
