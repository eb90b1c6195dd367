package dynamostore

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
)

// layout has a fixed width, so that strings compare as the times they stand for.
const layout = "2006-01-02T15:04:05.000000Z"

func timestamp(t time.Time) string { return t.UTC().Format(layout) }

// record makes the request of a release record the memory.
func (r *request) record(m *lock.Memory) {
	set, remove := "SET deleteAfter = :keep", free
	newest := ""
	if n := len(m.Done); n > 0 {
		newest = m.Done[n-1].Event
		r.in.ExpressionAttributeValues[":done"] = doneValue(m.Done)
		set += ", done = :done"
	}
	if m.Top != "" {
		r.str(":top", m.Top)
		set += ", top = :top"
	}
	switch m.Result.Event {
	case "":
		remove += ", replay, replayOf"
	case newest: // an older event's is in the row already
		r.str(":of", newest)
		r.in.ExpressionAttributeValues[":replay"] = &types.AttributeValueMemberB{Value: m.Result.Body}
		set += ", replay = :replay, replayOf = :of"
	}
	update := set + " " + remove
	r.in.UpdateExpression = &update
}

// places is how many decimals of a number in the map tell an event's place in the
// order of completion, because a map has none of its own.
const places = 5

func doneValue(done []lock.Completed) types.AttributeValue {
	m := make(map[string]types.AttributeValue, len(done))
	for i, c := range done {
		m[c.Event] = &types.AttributeValueMemberN{Value: fmt.Sprintf("%d.%0*d", c.Until.UnixMilli(), places, i)}
	}
	return &types.AttributeValueMemberM{Value: m}
}

// parse reads a row. The zero Row stands for no item, and for one of nothing but its
// key, which some servers return of a row that was not there.
func (s *Store) parse(item map[string]types.AttributeValue) (lock.Row, error) {
	if len(item) <= 1 {
		return lock.Row{}, nil
	}
	if _, ok := item["rowFormat"]; ok {
		return lock.Row{Newer: true}, nil
	}
	row := lock.Row{
		Token: str(item, "lease"), Event: str(item, "event"), Holder: str(item, "holder"),
		Memory: lock.Memory{Top: str(item, "top"), Result: lock.Result{Event: str(item, "replayOf")}},
	}
	if b, ok := item["replay"].(*types.AttributeValueMemberB); ok {
		row.Memory.Result.Body = b.Value
	}
	var err error
	if row.Since, err = time.Parse(layout, str(item, "since")); err != nil {
		return lock.Row{}, s.unreadable("has no readable attribute since: is the table used by something else?")
	}
	if row.Token != "" {
		if row.Until, err = time.Parse(layout, str(item, "expires")); err != nil {
			return lock.Row{}, s.unreadable("is held, but has no readable attribute expires: is the table used by something else?")
		}
	}
	if n, ok := item["fence"].(*types.AttributeValueMemberN); ok {
		if row.Fence, err = strconv.ParseInt(n.Value, 10, 64); err != nil {
			return lock.Row{}, s.unreadable("has a fence that is no 64-bit number")
		}
	}
	if n, ok := item["deleteAfter"].(*types.AttributeValueMemberN); ok {
		if seconds, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			row.Keep = time.Unix(seconds, 0)
		}
	}
	row.Memory.Done = parseDone(item["done"])
	return row, nil
}

func parseDone(v types.AttributeValue) []lock.Completed {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok || len(m.Value) == 0 {
		return nil
	}
	type entry struct {
		lock.Completed
		place string
	}
	entries := make([]entry, 0, len(m.Value))
	for event, v := range m.Value {
		n, ok := v.(*types.AttributeValueMemberN)
		if !ok {
			continue
		}
		until, place, _ := strings.Cut(n.Value, ".")
		if ms, err := strconv.ParseInt(until, 10, 64); err == nil {
			entries = append(entries, entry{lock.Completed{Event: event, Until: time.UnixMilli(ms)}, place})
		}
	}
	// Decimals compare as text, also without the zeros that the server drops at their end.
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.place, b.place), a.Until.Compare(b.Until))
	})
	done := make([]lock.Completed, len(entries))
	for i, e := range entries {
		done[i] = e.Completed
	}
	return done
}

func str(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// unreadable is permanent, but does not say that nothing was applied: the row may
// be one that an acquire was granted.
func (s *Store) unreadable(why string) error {
	return &lock.StoreError{Store: s.name(), Err: fmt.Errorf("the row %s", why)}
}
