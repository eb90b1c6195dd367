package eventsource

import (
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// visible returns the messages that can be received that many seconds after
// the start: groups behind a bar, their messages behind a space.
func visible(q *Queue[string], second int) string {
	var groups []string
	for _, g := range q.Visible(at(second)) {
		var ids []string
		for _, m := range g {
			ids = append(ids, m.Value)
		}
		groups = append(groups, strings.Join(ids, " "))
	}
	return strings.Join(groups, "|")
}

func at(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }

func expect(t *testing.T, q *Queue[string], second int, want string) {
	t.Helper()
	if got := visible(q, second); got != want {
		t.Errorf("after %d s %q is visible, want %q", second, got, want)
	}
}

func TestStandardQueue(t *testing.T) {
	t.Parallel()
	q := &Queue[string]{MaxReceiveCount: 2}
	a, b := &Message[string]{Value: "a", Visible: at(0)}, &Message[string]{Value: "b", Visible: at(0)}
	for _, m := range []*Message[string]{a, b, {Value: "c", Visible: at(1)}} {
		q.Send(m)
	}
	expect(t, q, 0, "a|b")
	q.Receive([]*Message[string]{a, b}, at(10))
	expect(t, q, 9, "c")
	q.Delete([]*Message[string]{b})
	expect(t, q, 10, "c|a")
	q.Receive([]*Message[string]{a}, at(20))
	if dead := q.DeadLetters(at(19)); len(dead) != 0 {
		t.Errorf("a dead letter is in flight: %v", dead)
	}
	if dead := q.DeadLetters(at(20)); len(dead) != 1 || dead[0] != a {
		t.Errorf("dead letters %v", dead)
	}
	expect(t, q, 20, "c")
}

func TestFIFOQueue(t *testing.T) {
	t.Parallel()
	q := &Queue[string]{FIFO: true, MaxReceiveCount: 2}
	var sent []*Message[string]
	for i, id := range strings.Fields("a1 b1 a2 a3") {
		sent = append(sent, &Message[string]{Value: id, Group: id[:1], Visible: at(i)})
		q.Send(sent[i])
	}
	expect(t, q, 2, "a1 a2|b1")
	q.Receive([]*Message[string]{sent[0], sent[2]}, at(10))
	expect(t, q, 9, "b1")
	q.Delete(sent[:1])
	expect(t, q, 9, "b1") // a2 is in flight, and a3 waits for it
	if next, ok := q.Next(at(9)); !ok || next != at(10) {
		t.Errorf("the next message becomes visible at %v, %v", next, ok)
	}
	sent[2].Visible = at(9)
	expect(t, q, 9, "b1|a2 a3")
	if next, ok := q.Next(at(9)); ok {
		t.Errorf("a visible message becomes visible at %v", next)
	}
	q.Receive(sent[2:3], at(20))
	if q.DeadLetters(at(20)); q.Empty() {
		t.Error("the queue is empty")
	}
	expect(t, q, 20, "b1|a3")
	if q.Delete(sent); !q.Empty() {
		t.Error("the queue is not empty")
	}
}
