package fakedynamo

import (
	"cmp"
	"slices"
)

// maxKeyBytes is the service's limit on the size of a partition key.
const maxKeyBytes = 2048

// kind says what a request does to one item. The names are the members of an
// element of a transaction.
type kind string

const (
	kindUpdate kind = "Update"
	kindPut    kind = "Put"
	kindDelete kind = "Delete"
	kindCheck  kind = "ConditionCheck"
)

// action is what a request does to one item.
type action struct {
	table    *table
	key      string
	old, new item  // nil: none
	syntax   error // of the request itself
	schema   error // the key is not one of the table
	refusal  error // by the condition, or by what the item has
}

// err returns why the action cannot take place. Errors of the request itself go
// before the condition, and errors that depend on the item go after it.
func (a *action) err() error { return cmp.Or(a.schema, a.syntax, a.refusal) }

func (a *action) apply() {
	switch {
	case a.new != nil:
		a.table.items[a.key] = a.new
	default:
		delete(a.table.items, a.key)
	}
}

// prepare evaluates what an action would do. It changes nothing.
func (s *Server) prepare(k kind, in *input) (*action, error) {
	t, err := s.existing(in)
	if err != nil {
		return nil, err
	}
	a := &action{table: t}
	if k == kindPut {
		in.Key = item{t.key: in.Item[t.key]}
	}
	if a.syntax = cmp.Or(in.checkOptions(k), in.checkKeyValue(t.key)); a.syntax != nil {
		return a, nil
	}
	if a.schema = in.checkSchema(k, t.key); a.schema == nil {
		a.key = in.partitionKey()
		a.old = t.items[a.key]
	}
	e := newEvaluator(in)
	a.new = e.result(k, a.old)
	fulfilled := e.condition("ConditionExpression", in.ConditionExpression, a.old)
	a.syntax = cmp.Or(e.check(), in.Item.check(0))
	if k == kindPut && a.new.size() > maxItemBytes {
		a.syntax = cmp.Or(a.syntax, invalid("Item size has exceeded the maximum allowed size"))
	}
	switch {
	case e.changed[t.key]:
		a.schema = cmp.Or(a.schema, invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", t.key))
	case !fulfilled:
		failed := failure(dynamoType+"ConditionalCheckFailedException", "The conditional request failed")
		if in.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
			failed.Item = a.old
		}
		a.refusal = failed
	case e.mismatch != nil:
		a.refusal = e.mismatch
	case a.new.size() > maxItemBytes:
		a.refusal = invalid("Item size to update has exceeded the maximum allowed size")
	}
	return a, nil
}

// result returns the item that the action makes of old; nil is none.
func (e *evaluator) result(k kind, old item) item {
	switch k {
	case kindUpdate:
		return e.update(old)
	case kindPut:
		return e.in.Item
	case kindDelete:
		return nil
	}
	return old // a check changes nothing
}

// output is the answer to a request about one item.
type output struct {
	Attributes item `json:",omitempty"`
	Item       item `json:",omitempty"`
}

func (s *Server) updateItem(in *input) (any, error) { return s.write(kindUpdate, in) }

func (s *Server) putItem(in *input) (any, error) { return s.write(kindPut, in) }

// write carries out UpdateItem or PutItem.
func (s *Server) write(k kind, in *input) (any, error) {
	a, err := s.prepare(k, in)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(in.checkReturnValues(k), a.err()); err != nil {
		return nil, err
	}
	a.apply()
	switch in.ReturnValues {
	case "ALL_NEW":
		return output{Attributes: a.new}, nil
	case "ALL_OLD":
		return output{Attributes: a.old}, nil
	}
	return output{}, nil
}

// getItem carries out GetItem. Every read is consistent.
func (s *Server) getItem(in *input) (any, error) {
	t, err := s.existing(in)
	if err == nil {
		err = cmp.Or(in.checkKeyValue(t.key), in.checkSchema(kindUpdate, t.key))
	}
	if err != nil {
		return nil, err
	}
	return output{Item: t.items[in.partitionKey()]}, nil
}

func (in *input) checkOptions(k kind) error {
	switch {
	case !slices.Contains([]string{"", "NONE", "ALL_OLD"}, in.ReturnValuesOnConditionCheckFailure):
		return invalid("fakedynamo does not support ReturnValuesOnConditionCheckFailure %q", in.ReturnValuesOnConditionCheckFailure)
	case k == kindCheck && in.ConditionExpression == nil:
		return invalid("1 validation error detected: Value null at 'conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null")
	case k != kindPut && in.Item != nil:
		return invalid("fakedynamo does not support the member \"Item\" except in a Put")
	case k != kindUpdate && in.UpdateExpression != "":
		return invalid("fakedynamo does not support the member \"UpdateExpression\" except in an Update")
	}
	return nil
}

// checkReturnValues checks a member that a transaction does not have.
func (in *input) checkReturnValues(k kind) error {
	if in.ReturnValues == "ALL_NEW" && k == kindPut || !slices.Contains([]string{"", "NONE", "ALL_NEW", "ALL_OLD"}, in.ReturnValues) {
		return invalid("fakedynamo does not support ReturnValues %q", in.ReturnValues)
	}
	return nil
}

// checkKeyValue checks what no table accepts as a key.
func (in *input) checkKeyValue(name string) error {
	v := in.Key[name]
	switch {
	case v.S == nil:
		return nil // the schema has more to say
	case *v.S == "":
		return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", name)
	case len(*v.S) > maxKeyBytes:
		return invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	}
	return nil
}

// checkSchema checks the key against that of the table.
func (in *input) checkSchema(k kind, name string) error {
	switch got := in.Key[name].kind(); {
	case len(in.Key) == 1 && got == "S":
		return nil
	case k != kindPut:
		return invalid("The provided key element does not match the schema")
	case got == "":
		return invalid("One or more parameter values were invalid: Missing the key %s in the item", name)
	default:
		return invalid("One or more parameter values were invalid: Type mismatch for key %s expected: S actual: %s", name, got)
	}
}
