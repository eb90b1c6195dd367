package fakedynamo

import (
	"strconv"
	"strings"
	"testing"
)

func TestReserved(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]bool{"TOKEN": true, "token": true, "Name": true, "abort": true, "zone": true, "id": false, "fence": false, "exp": false, "rel": false, "": false} {
		if got := reserved(word); got != want {
			t.Errorf("reserved(%q) = %t", word, got)
		}
	}
	if n := len(strings.Fields(reservedWords)); n != 573 || len(reservedSet()) != n {
		t.Errorf("%d words, %d different ones, want the published 573", n, len(reservedSet()))
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	parsed := 0
	c := cache[string]{parse: func(text string) (string, error) {
		parsed++
		if text == "bad" {
			return "", refusal("bad")
		}
		return "parsed " + text, nil
	}}
	for range 2 {
		if got, err := c.get("a"); got != "parsed a" || err != nil {
			t.Errorf("get(a) = %q, %v", got, err)
		}
		if _, err := c.get("bad"); err == nil {
			t.Error("get(bad) succeeded")
		}
	}
	if parsed != 2 {
		t.Errorf("parsed %d times, want 2", parsed)
	}
	for i := range 3 * maxCached {
		_, _ = c.get("x" + strconv.Itoa(i))
		if len(c.results) > maxCached {
			t.Fatalf("%d results cached", len(c.results))
		}
	}
}

// FuzzExpression feeds the parsers, and what they accept to the evaluation.
// Nothing may panic, and no accepted update may touch the item it starts from.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"SET a = :v", "SET m.#n = if_not_exists(m.x, :v) + :v, b = a - m.x REMOVE m.y.z, c", "REMOVE a.b.c",
		"SET a = if_not_exists(if_not_exists(b), :v)", "set x=:v,y=:s", "SET a = :",
		"(attribute_exists(a) OR m.x < :v) AND NOT #n.x = :s", "attribute_not_exists(m.x) and (a <> b or a >= :v)",
		"((a = :v))", "attribute_exists(a) = foo(b)", "a = attribute_exists(", "NOT", "#", "é < \x00",
	} {
		f.Add(seed)
	}
	n, _ := decodeNumber("7")
	values := map[string]*value{":v": n, ":s": {kind: "S", text: "x"}}
	f.Fuzz(func(t *testing.T, text string) {
		e := env{names: map[string]string{"#n": "n"}, values: values}
		it := item{"id": {kind: "S", text: "k"}, "a": n, "m": {kind: "M", m: map[string]*value{"x": n, "y": {kind: "M"}}}}
		before := marshal(t, it.raw())
		for _, old := range []item{it, nil} {
			if c, err := parseCondition(text); err == nil && c.root.check(e) == nil {
				c.root.eval(e, old)
			}
			u, err := parseUpdate(text)
			if err != nil || u.check(e) != nil {
				continue
			}
			p := preparedUpdate{env: e, update: u}
			if changed, err := p.apply(old, "id", "k"); err == nil {
				p.updated(changed).append(nil)
			}
		}
		if after := marshal(t, it.raw()); after != before {
			t.Errorf("%q changed the stored item %s to %s", text, before, after)
		}
	})
}
