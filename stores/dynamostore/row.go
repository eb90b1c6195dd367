package dynamostore

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// layout has a fixed width, so that its strings sort like the times that they
// mean.
const layout = "2006-01-02T15:04:05.000000Z"

func timestamp(t time.Time) string { return t.UTC().Format(layout) }

// values are the values of an expression, or the attributes of an item.
type values map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// wholeSeconds rounds up, because the TTL attribute counts whole seconds.
func wholeSeconds(t time.Time) types.AttributeValue {
	return number(t.Add(time.Second - time.Nanosecond).Unix())
}

func (s *Store) input(name, update, condition string, v values) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 values{"lock": text(name)},
		UpdateExpression:                    &update,
		ConditionExpression:                 &condition,
		ExpressionAttributeValues:           v,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// withMemory returns the update of a release that also replaces the memory, and
// adds its values to v. It removes what the memory lacks.
func withMemory(m *driver.Memory, release, removal string, v values) (setting, removing string) {
	set, remove := make([]string, 0, 7), make([]string, 0, 7)
	set, remove = append(set, release), append(remove, removal, "marks")
	newest := ""
	if n := len(m.Completed); n > 0 {
		newest = m.Completed[n-1].Event
		v[":completed"] = completedValue(m.Completed)
		set = append(set, "completed = :completed")
	} else {
		remove = append(remove, "completed")
	}
	if payloads := payloadsValue(m.Completed); payloads != nil {
		v[":payloads"] = payloads
		set = append(set, "payloads = :payloads")
	} else {
		remove = append(remove, "payloads")
	}
	if len(m.Interrupted) > 0 {
		v[":interrupted"] = interruptedValue(m.Interrupted)
		set = append(set, "interrupted = :interrupted")
	} else {
		remove = append(remove, "interrupted")
	}
	if m.HighestOrder != "" {
		v[":order"] = text(m.HighestOrder)
		set = append(set, "highestOrder = :order")
	} else {
		remove = append(remove, "highestOrder")
	}
	switch m.Result.Event {
	case "":
		remove = append(remove, "resultBody", "resultEvent")
	case newest: // the result of an older event is in the row already
		v[":resultEvent"] = text(newest)
		v[":resultBody"] = &types.AttributeValueMemberB{Value: m.Result.Body}
		set = append(set, "resultBody = :resultBody", "resultEvent = :resultEvent")
	}
	return strings.Join(set, ", "), strings.Join(remove, ", ")
}

// places is how many decimals of a number in a map tell an event's place in the
// order of the list, because a map has no order of its own.
const places = 5

// seconds is how many more decimals tell how many seconds before that time an
// event was completed.
const seconds = 8

func completedValue(events []driver.CompletedEvent) types.AttributeValue {
	m := make(values, len(events))
	for i, c := range events {
		m[c.Event] = placed(c.Until, i, c.At)
	}
	return &types.AttributeValueMemberM{Value: m}
}

// placed returns the number of an event. The zero at is not known.
func placed(until time.Time, place int, at time.Time) types.AttributeValue {
	before := until.Unix() - at.Unix()
	if before <= 0 || before >= 1e8 {
		return &types.AttributeValueMemberN{Value: fmt.Sprintf("%d.%0*d", until.UnixMilli(), places, place)}
	}
	return &types.AttributeValueMemberN{Value: fmt.Sprintf("%d.%0*d%0*d", until.UnixMilli(), places, place, seconds, before)}
}

// completedAt returns when an event was completed, as the decimals of its time
// tell, or the zero time.
func completedAt(until time.Time, decimals string) time.Time {
	if len(decimals) <= places { // the server drops trailing zeros
		return time.Time{}
	}
	digits := (decimals[places:] + strings.Repeat("0", seconds))[:seconds]
	before, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || before <= 0 {
		return time.Time{}
	}
	return time.Unix(until.Unix()-before, 0)
}

// payloadsValue returns the digests of the payloads by event, or nil if there
// are none.
func payloadsValue(events []driver.CompletedEvent) types.AttributeValue {
	var m values
	for _, c := range events {
		if c.Payload == "" {
			continue
		}
		if m == nil {
			m = values{}
		}
		m[c.Event] = text(c.Payload)
	}
	if m == nil {
		return nil
	}
	return &types.AttributeValueMemberM{Value: m}
}

// interruptedValue returns interrupted events by event.
func interruptedValue(events []driver.InterruptedEvent) types.AttributeValue {
	m := make(values, len(events))
	for i, e := range events {
		entry := values{"holder": text(e.Holder), "since": text(timestamp(e.Since)), "until": placed(e.Until, i, time.Time{})}
		if e.Payload != "" {
			entry["payload"] = text(e.Payload)
		}
		m[e.Event] = &types.AttributeValueMemberM{Value: entry}
	}
	return &types.AttributeValueMemberM{Value: m}
}

// parseInterrupted reports whether all events can be read: one that is left out
// would run again.
func parseInterrupted(interrupted types.AttributeValue) (events []driver.InterruptedEvent, ok bool) {
	all := members(interrupted)
	untils := make(values, len(all))
	for event, v := range all {
		untils[event] = members(v)["until"]
	}
	inOrder := inPlace(untils)
	events = make([]driver.InterruptedEvent, len(inOrder))
	for i, e := range inOrder {
		run := members(all[e.event])
		since, _ := time.Parse(layout, str(run, "since")) // it only tells people
		events[i] = driver.InterruptedEvent{Event: e.event, Payload: str(run, "payload"), Holder: str(run, "holder"), Since: since, Until: e.until}
	}
	return events, readAll(interrupted, len(events))
}

// parse reads a row. It returns the zero Row if there is no item, or an item
// with nothing but its key, which some servers return for a missing row.
func (s *Store) parse(item map[string]types.AttributeValue) (driver.Row, error) {
	if len(item) <= 1 {
		return driver.Row{}, nil
	}
	if _, ok := item["rowFormat"]; ok {
		return driver.Row{Newer: true}, nil
	}
	row := driver.Row{
		Token: str(item, "ownerToken"), Event: str(item, "event"), Payload: str(item, "payload"), Holder: str(item, "holder"),
		Cooldown: str(item, "cooldown"),
		Memory:   driver.Memory{HighestOrder: str(item, "highestOrder"), Result: driver.Result{Event: str(item, "resultEvent")}},
	}
	if b, ok := item["resultBody"].(*types.AttributeValueMemberB); ok {
		row.Memory.Result.Body = b.Value
	}
	var err error
	if row.Stamp, err = time.Parse(layout, str(item, "stamp")); err != nil {
		return driver.Row{}, s.unreadable("has no readable attribute stamp: is the table used by something else?")
	}
	if row.Token != "" {
		if row.Until, err = time.Parse(layout, str(item, "heldUntil")); err != nil {
			return driver.Row{}, s.unreadable("is held, but has no readable attribute heldUntil: is the table used by something else?")
		}
	}
	if n, ok := item["fence"].(*types.AttributeValueMemberN); ok {
		if row.Fence, err = strconv.ParseInt(n.Value, 10, 64); err != nil {
			return driver.Row{}, s.unreadable("has a fence that is not a 64-bit number")
		}
	}
	if n, ok := item["marks"].(*types.AttributeValueMemberN); ok {
		if row.Marks, err = strconv.ParseInt(n.Value, 10, 64); err != nil {
			return driver.Row{}, s.unreadable("has marks that are not a 64-bit number")
		}
	}
	if n, ok := item["deleteAfter"].(*types.AttributeValueMemberN); ok {
		if seconds, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			row.DeleteAfter = time.Unix(seconds, 0)
		}
	}
	row.TakesMarks = whole(item, "takesMarks") != 0
	row.Line, row.Served = whole(item, "line"), whole(item, "served")
	row.InterruptedFor = time.Duration(whole(item, "interruptedFor")) * time.Millisecond
	if item["interruptedFor"] != nil && row.InterruptedFor <= 0 {
		return driver.Row{}, s.unreadable("has an interruptedFor that is not a number of milliseconds")
	}
	var ok bool
	if row.Memory.Completed, ok = parseCompleted(item["completed"], item["payloads"]); !ok {
		return driver.Row{}, s.unreadable("has completed events that cannot be read")
	}
	if row.Memory.Interrupted, ok = parseInterrupted(item["interrupted"]); !ok {
		return driver.Row{}, s.unreadable("has interrupted events that cannot be read")
	}
	return row, nil
}

// parseCompleted reports whether all events can be read: one that is left out
// would run again.
func parseCompleted(completed, payloads types.AttributeValue) ([]driver.CompletedEvent, bool) {
	inOrder, payloadOf := inPlace(members(completed)), members(payloads)
	events := make([]driver.CompletedEvent, len(inOrder))
	for i, e := range inOrder {
		events[i] = driver.CompletedEvent{Event: e.event, Payload: str(payloadOf, e.event), Until: e.until, At: completedAt(e.until, e.decimals)}
	}
	return events, readAll(completed, len(events))
}

// readAll reports whether n events are all that v holds.
func readAll(v types.AttributeValue, n int) bool {
	all := members(v)
	return n == len(all) && (all != nil || v == nil)
}

// placedEvent is an event of a map, as [placed] wrote it.
type placedEvent struct {
	event    string
	until    time.Time
	decimals string // of its number: the place first
}

// inPlace returns the events of a map in the order that [placed] gave them. It
// leaves out those whose number is not readable.
func inPlace(numbers values) []placedEvent {
	events := make([]placedEvent, 0, len(numbers))
	for event, v := range numbers {
		n, ok := v.(*types.AttributeValueMemberN)
		if !ok {
			continue
		}
		until, decimals, _ := strings.Cut(n.Value, ".")
		if ms, err := strconv.ParseInt(until, 10, 64); err == nil {
			events = append(events, placedEvent{event, time.UnixMilli(ms), decimals})
		}
	}
	// Decimals compare as text, even without the trailing zeros that the server
	// drops.
	slices.SortFunc(events, func(a, b placedEvent) int {
		return cmp.Or(strings.Compare(a.decimals, b.decimals), a.until.Compare(b.until))
	})
	return events
}

// members returns what a map holds. It is nil if v is not a map.
func members(v types.AttributeValue) values {
	if m, ok := v.(*types.AttributeValueMemberM); ok {
		return m.Value
	}
	return nil
}

// whole returns a number that decides about no lock. It is zero if it is not
// readable.
func whole(item map[string]types.AttributeValue, name string) int64 {
	n, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, _ := strconv.ParseInt(n.Value, 10, 64)
	return i
}

func str(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// unreadable returns a permanent error without Unapplied: an acquire may have
// been applied.
func (s *Store) unreadable(why string) error {
	return &driver.Error{Lasting: true, Store: s.String(), Err: fmt.Errorf("the row %s", why)}
}
