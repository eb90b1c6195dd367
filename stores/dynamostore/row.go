package dynamostore

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock"
)

// layout has a fixed width, so that strings compare as the times they stand for.
const layout = "2006-01-02T15:04:05.000000Z"

func timestamp(t time.Time) string { return t.UTC().Format(layout) }

const (
	// writeUnit is what one write capacity unit covers.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
	writeUnit = 1024
	// leastEvents are remembered even where they cost a second write unit.
	leastEvents = 8
	// maxResult leaves room for the rest of the row under DynamoDB's 400 KB.
	maxResult = 350 << 10
	// fixedSize is the names and values of a held row without its own strings.
	fixedSize = len("lock") + len("fence") + 11 + len("since") + len(layout) + len("lease") + 26 +
		len("expires") + len(layout) + len("holder") + len("event") + len("top") +
		len("deleteAfter") + 7 + len("done") + 3
	// usualHolder is the size of a function's description: the next holder's is
	// not known yet.
	usualHolder  = 160
	doneOverhead = 10 // of an entry beside its event: number and map bookkeeping
)

// fit drops the oldest events that would make the row cost a second write unit.
func fit(name string, m *lock.Memory) []lock.Completed {
	size := fixedSize + len(name) + usualHolder + len(m.Top)
	longest := 0
	for _, c := range m.Done {
		longest = max(longest, len(c.Event))
		size += len(c.Event) + doneOverhead
	}
	size += longest // the next event, while it is worked on
	done := m.Done
	for len(done) > leastEvents && size > writeUnit {
		size -= len(done[0].Event) + doneOverhead
		done = done[1:]
	}
	return done
}

// record makes the request of a release record t's memory. It returns what of the
// memory is kept.
func (r *request) record(t *lock.Settlement) lock.Memory {
	kept := *t.Memory
	kept.Done = fit(t.Name, t.Memory)
	set, remove := "SET deleteAfter = :keep", releaseUpdate
	r.num(":keep", t.Keep.Unix())
	newest := ""
	if n := len(kept.Done); n > 0 {
		newest = kept.Done[n-1].Event
		r.in.ExpressionAttributeValues[":done"] = doneValue(kept.Done)
		set += ", done = :done"
	}
	if kept.Top != "" {
		r.str(":top", kept.Top)
		set += ", top = :top"
	}
	switch {
	case len(kept.Result.Body) > maxResult:
		kept.Result = lock.Result{}
		remove += ", replay, replayOf"
	case kept.Result.Event == "":
		remove += ", replay, replayOf"
	case kept.Result.Event == newest: // an older event's is in the row already
		r.str(":of", newest)
		r.in.ExpressionAttributeValues[":replay"] = &types.AttributeValueMemberB{Value: kept.Result.Body}
		set += ", replay = :replay, replayOf = :of"
	}
	update := set + " " + remove
	r.in.UpdateExpression = &update
	return kept
}

func doneValue(done []lock.Completed) types.AttributeValue {
	m := make(map[string]types.AttributeValue, len(done))
	for _, c := range done {
		m[c.Event] = &types.AttributeValueMemberN{Value: strconv.FormatInt(c.Until.UnixMilli(), 10)}
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
		return lock.Row{}, s.unreadable("was written by a newer version of lambdalock: deploy that version here too")
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
	row.Memory.Done = parseDone(item["done"])
	return row, nil
}

func parseDone(v types.AttributeValue) []lock.Completed {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok || len(m.Value) == 0 {
		return nil
	}
	done := make([]lock.Completed, 0, len(m.Value)+1)
	for event, v := range m.Value {
		if n, ok := v.(*types.AttributeValueMemberN); ok {
			if ms, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
				done = append(done, lock.Completed{Event: event, Until: time.UnixMilli(ms)})
			}
		}
	}
	slices.SortFunc(done, func(a, b lock.Completed) int { return a.Until.Compare(b.Until) })
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
