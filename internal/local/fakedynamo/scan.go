package fakedynamo

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
)

// maxPageBytes is how much a Scan reads before it answers.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html
const maxPageBytes = 1 << 20

// page is the answer to a Scan.
type page struct {
	Items               []item
	Count, ScannedCount int
	LastEvaluatedKey    item `json:",omitempty"`
}

// scan carries out Scan. It reads items in no order that a client could know,
// and always in the same one. Every read is consistent.
func (s *Server) scan(in *input) (any, error) {
	t, err := s.existing(in)
	if err != nil {
		return nil, err
	}
	if err := in.checkScan(t.key); err != nil {
		return nil, err
	}
	e := newEvaluator(in)
	e.condition("FilterExpression", in.FilterExpression, nil) // an empty table has the same errors
	if err := e.check(); err != nil {
		return nil, err
	}
	answer, size := page{Items: []item{}}, 0
	for _, key := range t.keysAfter(in.ExclusiveStartKey[t.key].S) {
		it := t.items[key]
		size += it.size()
		answer.ScannedCount++
		if e.condition("FilterExpression", in.FilterExpression, it) {
			answer.Items = append(answer.Items, it)
		}
		if size > maxPageBytes || in.Limit != nil && answer.ScannedCount == *in.Limit {
			answer.LastEvaluatedKey = item{t.key: it[t.key]} // even if no item follows
			break
		}
	}
	answer.Count = len(answer.Items)
	return answer, nil
}

func (in *input) checkScan(key string) error {
	switch {
	case in.Limit != nil && *in.Limit < 1:
		return invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", *in.Limit)
	case in.ExclusiveStartKey != nil && (len(in.ExclusiveStartKey) != 1 || in.ExclusiveStartKey[key].kind() != "S"):
		return invalid("The provided starting key is invalid: The provided key element does not match the schema")
	case in.ConditionExpression != nil || in.UpdateExpression != "" || in.Key != nil || in.Item != nil:
		return invalid("fakedynamo does not support the members of a write in a Scan")
	}
	return nil
}

// seed makes the order of keys differ from run to run.
var seed = maphash.MakeSeed()

// keysAfter returns the keys of the items that a Scan reads after that one, or
// all if it is nil. The key need not be that of an item any more.
func (t *table) keysAfter(last *string) []string {
	type place struct {
		hash uint64
		key  string
	}
	before := func(a, b place) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.key, b.key))
	}
	var start place
	if last != nil {
		start = place{maphash.String(seed, *last), *last}
	}
	var places []place
	for key := range t.items {
		p := place{maphash.String(seed, key), key}
		if last == nil || before(p, start) > 0 {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, before)
	keys := make([]string, len(places))
	for i, p := range places {
		keys[i] = p.key
	}
	return keys
}
