package fakedynamo

import (
	"strings"
	"testing"
)

func TestReserved(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]bool{"TOKEN": true, "token": true, "Name": true, "abort": true, "remove": true, "zone": true, "id": false, "fence": false, "exp": false, "rel": false, "": false} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			if got := reserved(word); got != want {
				t.Errorf("%t, want %t", got, want)
			}
		})
	}
	if n := len(strings.Fields(reservedWords)); n != 573 || len(reservedSet()) != n+1 {
		t.Errorf("%d words, %d different ones, want the published 573", n, len(reservedSet())-1)
	}
}

// FuzzExpression evaluates a text as an update and as a condition. Nothing may
// panic, and no update may touch the item it starts from.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"SET a = :v", "SET m = if_not_exists(m, :v) + :v, #n = :v REMOVE x, y", "REMOVE a, b", "SET a = :",
		"SET a = if_not_exists(b, :s) + :v", "(attribute_exists(a) OR m.x < :v) AND #n.x = :s",
		"attribute_not_exists(m.x) AND (a <= :v OR a >= :m)", "((a = :v))", "attribute_exists(", "begins_with(a, :s)", "NOT", "#", "é < \x00",
	} {
		f.Add(seed)
	}
	members := decode([]byte(`{"ExpressionAttributeNames":{"#n":"n"},"Key":{"id":{"S":"k"}},
		"ExpressionAttributeValues":{":v":{"N":"7"},":s":{"S":"x"},":m":{"M":{"x":{"N":"7"},"y":{"M":{}}}}}}`))
	values := members.ExpressionAttributeValues
	it := item{"id": members.Key["id"], "a": values[":v"], "m": values[":m"]}
	before := marshal(f, it)
	f.Fuzz(func(t *testing.T, text string) {
		in := *members
		in.UpdateExpression, in.ConditionExpression = text, &text
		for _, old := range []item{it, nil} {
			e := newEvaluator(&in)
			e.condition("ConditionExpression", in.ConditionExpression, old)
			if e.err == nil && e.at != len(e.tokens) {
				t.Errorf("%q was not read to its end", text)
			}
			e = newEvaluator(&in)
			if changed := e.update(old); e.err == nil && e.mismatch == nil {
				changed.size()
				marshal(t, changed)
			}
		}
		if after := marshal(t, it); after != before {
			t.Errorf("%q changed the stored item %s to %s", text, before, after)
		}
	})
}
