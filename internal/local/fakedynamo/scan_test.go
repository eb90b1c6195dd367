package fakedynamo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// scanOf returns the body of a Scan of the table "locks".
func scanOf(members string) string { return `{"TableName":"locks"` + members + `}` }

// ids returns the keys of the items in an answer.
func ids(answer map[string]any) []string {
	items, _ := answer["Items"].([]any)
	names := make([]string, 0)
	for _, it := range items {
		names = append(names, it.(map[string]any)["id"].(map[string]any)["S"].(string))
	}
	return names
}

func (s *Server) fill(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		status, answer := send(t, s, "PutItem", `{"TableName":"locks","Item":{"id":{"S":"`+name+`"},"n":{"N":"1"}}}`)
		if status != 200 {
			t.Fatal(answer)
		}
	}
}

const aFilter = `,"FilterExpression":"begins_with(#k, :p)","ExpressionAttributeNames":{"#k":"id"},"ExpressionAttributeValues":{":p":{"S":"a/"}}`

func TestScan(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.fill(t, "a/1", "a/2", "a", "b/a/", "a/é")
	for name, c := range map[string]struct {
		members string
		want    string // count and scanned count, and the keys
	}{
		"all":               {``, "5 5 [a a/1 a/2 a/é b/a/]"},
		"consistent":        {`,"ConsistentRead":true`, "5 5 [a a/1 a/2 a/é b/a/]"},
		"filter":            {aFilter, "3 5 [a/1 a/2 a/é]"},
		"nothing passes":    {strings.Replace(aFilter, `"a/"`, `"x"`, 1), "0 5 []"},
		"every key begins":  {strings.Replace(aFilter, `"a/"`, `""`, 1), "5 5 [a a/1 a/2 a/é b/a/]"},
		"a number begins":   {`,"FilterExpression":"begins_with(n, :p)","ExpressionAttributeValues":{":p":{"S":"1"}}`, "0 5 []"},
		"another condition": {`,"FilterExpression":"attribute_exists(n) AND id < :p","ExpressionAttributeValues":{":p":{"S":"a/2"}}`, "2 5 [a a/1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := send(t, s, "Scan", scanOf(c.members))
			names := ids(answer)
			slices.Sort(names)
			if got := fmt.Sprint(answer["Count"], answer["ScannedCount"], names); status != 200 || got != c.want || answer["LastEvaluatedKey"] != nil {
				t.Errorf("%d %v, want %s", status, answer, c.want)
			}
		})
	}
}

// TestScanPages: the pages have every item once, even if items come and go
// between them.
func TestScanPages(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("a/%d", i))
	}
	s.fill(t, want...)
	var got []string
	start := ""
	for pages := 1; ; pages++ {
		status, answer := send(t, s, "Scan", scanOf(`,"Limit":3`+start))
		if status != 200 || pages > 6 {
			t.Fatalf("page %d: %d %v", pages, status, answer)
		}
		names := ids(answer)
		got = append(got, names...)
		last, more := answer["LastEvaluatedKey"]
		if !more {
			break
		}
		if answer["ScannedCount"] != 3.0 {
			t.Errorf("page %d: %v", pages, answer)
		}
		start = `,"ExclusiveStartKey":` + marshal(t, last)
		s.mu.Lock()
		delete(s.tables["locks"].items, names[len(names)-1])
		s.mu.Unlock()
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, answer := send(t, newServer(t), "Scan", scanOf(`,"Limit":3`)); answer["Items"] == nil || answer["LastEvaluatedKey"] != nil {
		t.Errorf("an empty table has %v", answer)
	}
}

// TestScanFullPage: a page ends with the item that fills it, and a page that
// ends by its limit at the last item still says that there may be more.
func TestScanFullPage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for i := range 9 {
		send(t, s, "PutItem", fmt.Sprintf(`{"TableName":"locks","Item":{"id":{"S":"%d"},"s":{"S":"%s"}}}`, i, strings.Repeat("x", 200<<10)))
	}
	if _, answer := send(t, s, "Scan", scanOf(``)); answer["Count"] != 6.0 || answer["LastEvaluatedKey"] == nil {
		t.Errorf("count %v, last %v, want the six items that reach 1 MB", answer["Count"], answer["LastEvaluatedKey"])
	}
	if _, answer := send(t, s, "Scan", scanOf(aFilter)); answer["Count"] != 0.0 || answer["ScannedCount"] != 6.0 || answer["LastEvaluatedKey"] == nil {
		t.Errorf("%v, want an empty page that is not the last", answer)
	}
	s = newServer(t)
	s.fill(t, "a")
	if _, answer := send(t, s, "Scan", scanOf(`,"Limit":1`)); answer["Count"] != 1.0 || answer["LastEvaluatedKey"] == nil {
		t.Errorf("%v, want a last key", answer)
	}
}

func TestScanErrors(t *testing.T) {
	t.Parallel()
	s := newServer(t) // an empty table has the same errors
	for name, c := range map[string]struct{ body, want string }{
		"no table":            {`{"TableName":"none"}`, "Table: none not found"},
		"limit of 0":          {scanOf(`,"Limit":0`), "Value '0' at 'limit' failed to satisfy constraint"},
		"start without a key": {scanOf(`,"ExclusiveStartKey":{}`), "The provided starting key is invalid"},
		"start elsewhere":     {scanOf(`,"ExclusiveStartKey":{"ix":{"S":"k"}}`), "The provided starting key is invalid"},
		"start at a number":   {scanOf(`,"ExclusiveStartKey":{"id":{"N":"1"}}`), "The provided starting key is invalid"},
		"empty filter":        {scanOf(`,"FilterExpression":""`), "Invalid FilterExpression: The expression can not be empty;"},
		"no parenthesis":      {scanOf(`,"FilterExpression":"begins_with id, :p","ExpressionAttributeValues":{":p":{"S":"a"}}`), `fakedynamo does not support "id" after "begins_with"`},
		"one argument":        {scanOf(`,"FilterExpression":"begins_with(id)"`), `fakedynamo does not support ")" after "begins_with ( id"`},
		"begins with number":  {scanOf(`,"FilterExpression":"begins_with(id, :p)","ExpressionAttributeValues":{":p":{"N":"1"}}`), "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		"reserved word":       {scanOf(`,"FilterExpression":"begins_with(lock, :p)","ExpressionAttributeValues":{":p":{"S":"a"}}`), "reserved keyword: lock"},
		"value without use":   {scanOf(`,"ExpressionAttributeValues":{":p":{"S":"a"}}`), "unused in expressions"},
		"value not defined":   {scanOf(`,"FilterExpression":"begins_with(id, :p)"`), "attribute value: :p"},
		"condition":           {scanOf(`,"ConditionExpression":"attribute_exists(id)"`), "does not support the members of a write"},
		"segments":            {scanOf(`,"Segment":0,"TotalSegments":2`), `fakedynamo does not support the member "Segment"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := send(t, s, "Scan", c.body)
			if message, _ := answer["message"].(string); status != 400 || !strings.Contains(message, c.want) {
				t.Errorf("%d %v, want %q", status, answer, c.want)
			}
		})
	}
}
