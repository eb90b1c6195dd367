package explain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Verdict says what a delivery of the event would meet.
type Verdict struct {
	Row   string `json:"row"`   // the stored name
	Would string `json:"would"` // run, skip, refuse, decide or unknown
	Why   string `json:"why"`
	// Completed: it would be skipped because it was completed, and not as stale.
	Completed bool `json:"-"`
}

// What would happen to a delivery, without the options that change it.
const (
	Run    = "run"
	Skip   = "skip"
	Refuse = "refuse"
	// Decide: OnInterrupted decides, or the payload, which only the function knows.
	Decide = "decide"
	// Unknown: there is no row. A namespace or a key function that is not that of
	// the function leads to none, too.
	Unknown = "unknown"
)

// givenKey is the kind of a key that was given without an event.
const givenKey = "a key"

// OfKey returns an event that has only this key, which a key function of the
// user's gave.
func OfKey(key lock.Key) *Event {
	return &Event{Kind: givenKey, Records: []Record{{Keys: []Key{newKey("the given key", key)}}}}
}

// Judge asks the store about every key of the event. A row that cannot be read
// does not end it: claims of it are refused.
func (e *Event) Judge(ctx context.Context, store driver.Inspector, namespace string, now time.Time) error {
	for i := range e.Records {
		for j := range e.Records[i].Keys {
			k := &e.Records[i].Keys[j]
			if k.Ignored {
				continue
			}
			c := k.claim(namespace, now)
			row, err := store.Read(ctx, c.Name)
			switch {
			case err == nil:
				k.Verdict = judge(&row, &c)
			case damaged(ctx, store, namespace, err):
				k.Verdict = &Verdict{Row: c.Name, Would: Refuse, Why: "the row cannot be read: " + inspect.Safe(strings.TrimPrefix(err.Error(), "lambdalock: "))}
			default:
				return err
			}
		}
	}
	return nil
}

// damaged reports whether a read failed because of its row: another one of the
// namespace, which is not there, can be read, or only that is denied.
func damaged(ctx context.Context, store driver.Inspector, namespace string, err error) bool {
	var e *driver.Error
	if !errors.As(err, &e) || !e.Lasting {
		return false
	}
	_, err = store.Read(ctx, stored.Name(stored.Prefix(namespace), rand.Text()))
	return err == nil || inspect.Denied(err) && e.Action == ""
}

// claim returns the claim that package lock would make.
func (k *Key) claim(namespace string, now time.Time) driver.Claim {
	c := driver.Claim{
		Name: stored.Name(stored.Prefix(namespace), k.key.Name), Event: stored.Event(k.key.Event), Order: k.key.Order,
		Token: rand.Text(), Now: now, Stamp: now, Until: now,
	}
	if k.key.Event != "" {
		c.Payload = stored.Payload(k.key.Payload)
	}
	return c
}

func judge(row *driver.Row, c *driver.Claim) *Verdict {
	v := &Verdict{Row: c.Name}
	if row.Unknown() {
		v.Would, v.Why = Unknown, "there is no such row. It runs if this is the function's namespace and key function; show --digest looks in all namespaces"
		return v
	}
	switch row.Judge(c) {
	case driver.Newer:
		v.Would, v.Why = Refuse, "a newer version of lambdalock wrote the row: deploy that version everywhere"
	case driver.Completed:
		v.completed(row, c)
	case driver.Stale:
		v.Would, v.Why = Skip, fmt.Sprintf("stale: an event with the order %s was completed, and this one's is not above it", inspect.Safe(row.Memory.HighestOrder))
	case driver.Held:
		v.held(row, c)
	default: // a claim that is Behind raises its stamp
		v.Would, v.Why = Run, "nobody holds the name, and the event is not remembered"
		if row.Token != "" && !row.Cooling() {
			v.Why = fmt.Sprintf("the holder %s died: its lease ended at %s", inspect.Safe(row.Holder), inspect.Moment(row.Until, c.Now))
		}
		v.again(row, c)
		v.interrupted(row, c)
	}
	return v
}

// interrupted says that a run of the event began, and nothing is known of its
// end.
func (v *Verdict) interrupted(row *driver.Row, c *driver.Claim) {
	m := inspect.MemoryAt(row, c.Now)
	e := m.FindInterrupted(c.Event, c.Now)
	switch {
	case e == nil:
	case mismatch(e.Payload, c.Payload):
		v.Would, v.Why = Refuse, "a run of the event was interrupted that had another payload (PayloadMismatchError)"
	default:
		v.Would, v.Why = Decide, fmt.Sprintf("the run that began at %s in %s was interrupted, and OnInterrupted decides. To decide yourself, use complete or forget", inspect.Moment(e.Since, c.Now), inspect.Safe(e.Holder))
	}
}

// again says that the event was completed, as long as the row tells.
func (v *Verdict) again(row *driver.Row, c *driver.Claim) {
	for _, done := range row.Memory.Completed {
		if done.Event == c.Event {
			v.Why = "the event was " + completed(&done, c.Now) + ", and was remembered until " + inspect.Moment(done.Until, c.Now) + ": it would run again"
		}
	}
}

func (v *Verdict) completed(row *driver.Row, c *driver.Claim) {
	withheld := false
	for _, done := range row.Memory.Completed {
		switch {
		case done.Event != c.Event || done.Expired(c.Now):
		case mismatch(done.Payload, c.Payload):
			v.Would, v.Why = Refuse, "the event was completed with another payload (PayloadMismatchError)"
			return
		case done.Payload != "" && c.Payload == "": // the function's may be another
			v.Would, v.Why = Decide, completed(&done, c.Now)+" with a payload, which this key does not give: the function skips the same and refuses another, so compare the events"
		default:
			withheld = done.Payload == "" && c.Payload != ""
			v.Completed, v.Would, v.Why = true, Skip, completed(&done, c.Now)+", and remembered until "+inspect.Moment(done.Until, c.Now)
		}
	}
	if row.Memory.Result.Event == c.Event && !withheld {
		v.Why += "; its result is kept for replay"
	}
}

// completed says that an event was completed, and when if the row tells.
func completed(done *driver.CompletedEvent, now time.Time) string {
	if done.At.IsZero() {
		return "completed"
	}
	return "completed at " + inspect.Moment(done.At, now)
}

func (v *Verdict) held(row *driver.Row, c *driver.Claim) {
	what := "another event"
	if c.Event != "" && c.Event == row.Event {
		what = "a delivery of the same event"
		if mismatch(row.Payload, c.Payload) {
			v.Would, v.Why = Refuse, "the event is being worked on with another payload (PayloadMismatchError)"
			return
		}
	}
	if row.Cooling() {
		v.Would, v.Why = Refuse, fmt.Sprintf("the name stays held until %s, because of the HoldAtLeast of its last holder (HeldError)", inspect.Moment(row.Until, c.Now))
		return
	}
	v.Would, v.Why = Refuse, fmt.Sprintf("held by %s in %s until %s at the latest (HeldError)", what, inspect.Safe(row.Holder), inspect.Moment(row.Until, c.Now))
}

func mismatch(a, b string) bool { return a != "" && b != "" && a != b }
