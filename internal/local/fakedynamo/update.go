package fakedynamo

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
)

// maxKeyBytes is the service's limit on the size of a partition key.
const maxKeyBytes = 2048

// updateItem carries out UpdateItem.
func (s *Server) updateItem(in *input) (any, error) {
	t, err := s.existing(in)
	if err == nil {
		err = cmp.Or(in.checkOptions(), in.checkKey(t.key))
	}
	if err != nil {
		return nil, err
	}
	key := in.partitionKey()
	old := t.items[key]
	e := newEvaluator(in)
	it := e.update(old)
	fulfilled := e.condition(old)
	err = e.check()
	switch {
	// Errors of the request itself go before the condition …
	case err != nil:
		return nil, err
	case e.changed[t.key]:
		return nil, invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", t.key)
	case !fulfilled:
		failed := failure(dynamoType+"ConditionalCheckFailedException", "The conditional request failed")
		if in.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
			failed.Item = old
		}
		return nil, failed
	// … and errors that depend on the item go after it.
	case e.mismatch != nil:
		return nil, e.mismatch
	case it.size() > maxItemBytes:
		return nil, invalid("Item size to update has exceeded the maximum allowed size")
	}
	t.items[key] = it
	switch in.ReturnValues {
	case "ALL_NEW":
		return output{it}, nil
	case "ALL_OLD":
		return output{old}, nil
	}
	return output{}, nil
}

// output is the answer to UpdateItem.
type output struct {
	Attributes item `json:",omitempty"`
}

func (in *input) checkOptions() error {
	if !slices.Contains([]string{"", "NONE", "ALL_NEW", "ALL_OLD"}, in.ReturnValues) {
		return invalid("fakedynamo does not support ReturnValues %q", in.ReturnValues)
	}
	if !slices.Contains([]string{"", "NONE", "ALL_OLD"}, in.ReturnValuesOnConditionCheckFailure) {
		return invalid("fakedynamo does not support ReturnValuesOnConditionCheckFailure %q", in.ReturnValuesOnConditionCheckFailure)
	}
	return nil
}

// checkKey checks the key against that of the table.
func (in *input) checkKey(name string) error {
	v := in.Key[name]
	switch {
	case len(in.Key) != 1 || v.kind() != "S":
		return invalid("The provided key element does not match the schema")
	case *v.S == "":
		return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", name)
	case len(*v.S) > maxKeyBytes:
		return invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	}
	return nil
}

// update returns the item that the update expression makes of old, which is nil
// if there is no item. It changes nothing in old.
func (e *evaluator) update(old item) item {
	e.start("UpdateExpression", e.in.UpdateExpression, old)
	if old == nil {
		e.item = e.in.Key
	}
	it := maps.Clone(e.item) // all actions read the item as it was
	if e.skip("SET") {
		for more := true; more; more = e.skip(",") {
			name := e.target()
			e.expect("=")
			it[name] = e.operand()
		}
	}
	if e.skip("REMOVE") {
		for more := true; more; more = e.skip(",") {
			delete(it, e.target())
		}
	}
	e.expect(end)
	return it
}

// target reads the name of the attribute that an action changes.
func (e *evaluator) target() string {
	name := e.name()
	if e.changed[name] {
		e.fail("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [%[1]s], path two: [%[1]s]", name)
	}
	e.changed[name] = true
	return name
}

// operand reads what a SET action assigns: a :placeholder or
// if_not_exists(name, :placeholder), and "+ :placeholder" if that follows.
func (e *evaluator) operand() value {
	var v value
	if e.skip("if_not_exists") {
		e.expect("(")
		v = e.item[e.name()]
		e.expect(",")
		if other := e.value(); v.kind() == "" {
			v = other
		}
		e.expect(")")
	} else {
		v = e.value()
	}
	if e.skip("+") {
		return e.sum(v, e.value())
	}
	return v
}

func (e *evaluator) sum(v, w value) value {
	if w.N == nil {
		e.fail("Incorrect operand type for operator or function; operator or function: +, operand type: %s", w.kind())
		return value{}
	}
	if v.N == nil {
		e.mismatch = invalid("An operand in the update expression has an incorrect data type")
		return value{}
	}
	n, err := newNumber(new(big.Rat).Add(v.N.rat(), w.N.rat()))
	if err != nil {
		e.mismatch = err
	}
	return value{N: &n}
}
