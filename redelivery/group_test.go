package redelivery_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lambdalock/lambdalock/redelivery"
)

// sendGroup sends messages to a FIFO queue, each of the group that its id
// begins with. Its handler does what the id ends with: P fails for good, F
// fails.
func (q *queue) sendGroup(ids ...string) {
	q.messages.FIFO = true
	for _, id := range ids {
		does := "1ms"
		if strings.HasSuffix(id, "P") {
			does = "permanent"
		}
		if strings.HasSuffix(id, "F") {
			does = "fails"
		}
		m := message(id, id, does)
		m.EventSourceARN += ".fifo"
		m.Attributes["MessageGroupId"] = id[:1]
		q.send(m)
	}
}

// TestPermanentOfAGroup shows that a FIFO group goes on in the same batch after
// messages that failed for good, each of which is in the dead-letter queue
// before the next of its group begins: otherwise each would cost those behind
// it a receive, and the fifth would take them all with it.
func TestPermanentOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.sendGroup("a1P", "a2P", "b1", "a3P", "a4P", "a5P", "a6", "b2P", "b3", "a7")
		copies := map[string]int{} // when a message begins
		q.begins = func(id string) { copies[id] = len(q.copiesOf(id[:1])) }
		q.poll(10, q.process(&redelivery.Options{DeadLetterQueue: letters + ".fifo"}))
		for id, times := range q.received {
			if len(times) != 1 {
				t.Errorf("%s was received %d times", id, len(times))
			}
		}
		for id, want := range map[string]int{"a1P": 0, "a2P": 1, "a5P": 4, "a6": 5, "a7": 5, "b1": 0, "b2P": 0, "b3": 1} {
			if copies[id] != want {
				t.Errorf("when %s began, %d of its group were in the dead-letter queue, want %d", id, copies[id], want)
			}
		}
		if got := strings.Join(q.copiesOf("a"), " "); got != "a1P a2P a3P a4P a5P" || len(q.dead) != 6 || len(q.warnings()) > 0 {
			t.Errorf("%d copies, of a %s; logged %q", len(q.dead), got, q.warnings())
		}
	})
}

// TestMalformedOfAGroup shows that a FIFO group goes on after a message whose
// key function says that it will never have a key.
func TestMalformedOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.malformed = "a2"
		q.sendGroup("a1", "a2", "a3")
		q.poll(10, q.process(&redelivery.Options{DeadLetterQueue: letters + ".fifo"}))
		if got := strings.Join(q.order, " "); got != "a1 a3" || strings.Join(q.copiesOf("a"), " ") != "a2" || len(q.received["a2"]) != 1 {
			t.Errorf("%s ran, %q were moved, after %d receives", got, q.copiesOf("a"), len(q.received["a2"]))
		}
	})
}

// copiesOf returns which messages of a group were moved, in this order.
func (q *queue) copiesOf(group string) []string {
	var ids []string
	for _, in := range q.dead {
		if aws.ToString(in.MessageGroupId) == group {
			ids = append(ids, aws.ToString(in.MessageDeduplicationId))
		}
	}
	return ids
}

// TestPermanentOfAGroupStays shows that a group waits behind a message that
// could not be moved, and goes on once it has moved.
func TestPermanentOfAGroupStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failures int // of requests that send
		late     time.Duration
		received int // the last message of the group
	}{
		"moved with the batch":  {1, 2 * time.Second, 2},
		"moved the next time":   {2, 6*timeout + 2*time.Second, 2},
		"moved the second time": {3, 6*timeout + 3*time.Second, 3},
		"moved the third time":  {4, 2*6*timeout + 3*time.Second, 3},
		"never moved":           {100, 5*6*timeout + time.Second, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				sent := 0
				q.fault = func(request string) string {
					if request == "send" {
						if sent++; sent <= c.failures {
							return "denied"
						}
					}
					return ""
				}
				began := time.Now()
				q.sendGroup("a1P", "a2", "a3")
				q.poll(10, q.process(&redelivery.Options{DeadLetterQueue: letters + ".fifo"}))
				if c.failures < 100 && (!slices.Equal(q.order, []string{"a1P", "a2", "a3"}) || q.handled["a3"].Sub(began) > c.late) || len(q.received["a3"]) != c.received {
					t.Errorf("handled %q after %v, received a3 %d times", q.order, q.handled["a3"].Sub(began), len(q.received["a3"]))
				}
				if w := q.warnings(); len(w) == 0 {
					t.Error("nothing is logged")
				}
			})
		})
	}
}
