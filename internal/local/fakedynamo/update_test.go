package fakedynamo

import (
	"reflect"
	"strings"
	"testing"
)

func TestUpdates(t *testing.T) {
	t.Parallel()
	const values = `"ExpressionAttributeValues":{":v":{"N":"5"}}`
	cases := []struct{ name, before, members, after string }{
		{"upsert", `{}`, `"UpdateExpression":"SET a = :v",` + values, `{"id":{"S":"k"},"a":{"N":"5"}}`},
		{"keeps the rest", `{"b":{"S":"x"}}`, `"UpdateExpression":"SET a = :v",` + values, `{"id":{"S":"k"},"a":{"N":"5"},"b":{"S":"x"}}`},
		{"spaces", `{"b":{"S":"x"}}`, `"UpdateExpression":" SET a=:v\n\tREMOVE b",` + values, `{"id":{"S":"k"},"a":{"N":"5"}}`},
		{"sum", `{"a":{"N":"2"}}`, `"UpdateExpression":"SET a = :v + :v",` + values, `{"id":{"S":"k"},"a":{"N":"10"}}`},
		{"difference", `{"a":{"N":"2"}}`, `"UpdateExpression":"SET a = a - :v",` + values, `{"id":{"S":"k"},"a":{"N":"-3"}}`},
		{"difference of nothing", `{"a":{"N":"2"}}`, `"UpdateExpression":"SET a = :v - :v",` + values, `{"id":{"S":"k"},"a":{"N":"0"}}`},
		{"less a negative number", `{"a":{"N":"2"},"b":{"N":"-7.5"}}`, `"UpdateExpression":"SET a = :v - b",` + values, `{"id":{"S":"k"},"a":{"N":"12.5"},"b":{"N":"-7.5"}}`},
		{"less zero", `{"a":{"N":"0"}}`, `"UpdateExpression":"SET a = :v - a",` + values, `{"id":{"S":"k"},"a":{"N":"5"}}`},
		{"copy", `{"a":{"S":"x"},"m":{"M":{"y":{"N":"1"}}}}`, `"UpdateExpression":"SET b = a, c = m.y"`, `{"id":{"S":"k"},"a":{"S":"x"},"b":{"S":"x"},"c":{"N":"1"},"m":{"M":{"y":{"N":"1"}}}}`},
		{"if_not_exists, missing", `{}`, `"UpdateExpression":"SET a = if_not_exists(a, :v) + :v",` + values, `{"id":{"S":"k"},"a":{"N":"10"}}`},
		{"if_not_exists, present", `{"b":{"N":"1"}}`, `"UpdateExpression":"SET a = if_not_exists(b, :v)",` + values, `{"id":{"S":"k"},"a":{"N":"1"},"b":{"N":"1"}}`},
		{"if_not_exists, key", `{}`, `"UpdateExpression":"SET a = if_not_exists(id, :v)",` + values, `{"id":{"S":"k"},"a":{"S":"k"}}`},
		{
			"swap", `{"a":{"N":"1"},"b":{"N":"2"}}`, `"UpdateExpression":"SET a = if_not_exists(b, :v), b = if_not_exists(a, :v)",` + values,
			`{"id":{"S":"k"},"a":{"N":"2"},"b":{"N":"1"}}`,
		},
		{"remove what is read", `{"a":{"N":"1"}}`, `"UpdateExpression":"SET b = if_not_exists(a, :v) REMOVE a",` + values, `{"id":{"S":"k"},"b":{"N":"1"}}`},
		{"remove several", `{"a":{"N":"1"},"b":{"N":"2"}}`, `"UpdateExpression":"REMOVE a, b, c"`, `{"id":{"S":"k"}}`},
		{"placeholder is one element", `{}`, `"UpdateExpression":"SET #e = :v","ExpressionAttributeNames":{"#e":"a.b name"},` + values, `{"id":{"S":"k"},"a.b name":{"N":"5"}}`},
		{"reserved word by placeholder", `{}`, `"UpdateExpression":"SET #e = :v","ExpressionAttributeNames":{"#e":"name"},` + values, `{"id":{"S":"k"},"name":{"N":"5"}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			put(t, s, c.before)
			if status, answer := updateItem(t, s, c.members); status != 200 || len(answer) != 0 {
				t.Errorf("%d %v", status, answer)
			}
			wantItem(t, s, c.after)
		})
	}
}

func TestUpdateErrors(t *testing.T) {
	t.Parallel()
	const invalid = "Invalid UpdateExpression: "
	cases := []struct{ update, want string }{
		{"", invalid + "The expression can not be empty;"},
		{"  ", invalid + "The expression can not be empty;"},
		{"SET", invalid + `fakedynamo does not support "<EOF>" after "SET"`},
		{"SET a", invalid + `fakedynamo does not support "<EOF>" after "SET a"`},
		{"SET a = :v,", invalid + `fakedynamo does not support "<EOF>" after "SET a = :v ,"`},
		{"SET a = :v b = :v", invalid + `fakedynamo does not support "b" after "SET a = :v"`},
		{"SET a = :v + :v + :v", invalid + `fakedynamo does not support "+" after "SET a = :v + :v"`},
		{"set a = :v", invalid + `fakedynamo does not support "set" after ""`},
		{"ADD a :v", invalid + `fakedynamo does not support "ADD" after ""`},
		{"SET a = :v ADD b :v", invalid + `fakedynamo does not support "ADD" after "SET a = :v"`},
		{"SET a = :v SET b = :v", invalid + `fakedynamo does not support "SET" after "SET a = :v"`},
		{"SET _a = :v", invalid + `fakedynamo does not support "_" after "SET"`},
		{"SET # = :v", invalid + `fakedynamo does not support "#" after "SET"`},
		{"SET a.b = :v", invalid + `fakedynamo does not support "." after "SET a"`},
		{"REMOVE a.b", invalid + `fakedynamo does not support "." after "REMOVE a"`},
		{"REMOVE :v", invalid + `fakedynamo does not support ":v" after "REMOVE"`},
		{"SET a = s - s - :v", invalid + `fakedynamo does not support "-" after "SET a = s - s"`},
		{"SET a = NOT", invalid + `fakedynamo does not support "NOT" after "SET a ="`},
		{"SET a = size(s)", invalid + `fakedynamo does not support "size" after "SET a ="`},
		{"SET a = if_not_exists(b.c, :v)", invalid + `fakedynamo does not support "." after "SET a = if_not_exists ( b"`},
		{"SET a = if_not_exists(:v, :v)", invalid + `fakedynamo does not support ":v" after "SET a = if_not_exists ("`},
		{"SET a = if_not_exists(b)", invalid + `fakedynamo does not support ")" after "SET a = if_not_exists ( b"`},
		{"SET token = :v", invalid + "Attribute name is a reserved keyword; reserved keyword: token"},
		{"SET remove = :v", invalid + "Attribute name is a reserved keyword; reserved keyword: remove"},
		{"SET #a = :w", invalid + "An expression attribute name used in the document path is not defined; attribute name: #a"},
		{"SET a = :w", invalid + "An expression attribute value used in expression is not defined; attribute value: :w"},
		{"SET a = :v, a = :s", invalid + "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"},
		{"SET a = :v REMOVE a", invalid + "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"},
		{"SET a = :v + :s", invalid + "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
		{"SET a = :v", "Value provided in ExpressionAttributeValues unused in expressions: keys: {:s}"},
		{"SET a = :v, b = :s, id = :v", "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key"},
		{"SET a = :v, b = :s REMOVE id", "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key"},
		{"SET a = :s - :v", invalid + "Incorrect operand type for operator or function; operator or function: -, operand type: S"},
		{"SET a = s - :v, b = :s", "An operand in the update expression has an incorrect data type"},
		{"SET a = :v - s, b = :s", "An operand in the update expression has an incorrect data type"},
		{"SET a = q, b = :v, c = :s", "The provided expression refers to an attribute that does not exist in the item"},
		{"SET a = :v - q, b = s + :v, c = :s", "The provided expression refers to an attribute that does not exist in the item"},
		{"SET a = big.x + :v, c = :s", "The provided expression refers to an attribute that does not exist in the item"},
		{"SET a = if_not_exists(s, :s) + :v", "An operand in the update expression has an incorrect data type"},
		{"SET a = if_not_exists(big, :s) + :v", "Attempting to store more than 38 significant digits in a Number"},
	}
	for _, c := range cases {
		t.Run(c.update, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			put(t, s, `{"s":{"S":"x"},"big":{"N":"1e50"}}`)
			before := s.Item("locks", "k")
			status, answer := updateItem(t, s, `"UpdateExpression":`+marshal(t, c.update)+`,"ExpressionAttributeValues":{":v":{"N":"1"},":s":{"S":"x"}}`)
			if status != 400 || answer["__type"] != validateType+"ValidationException" || answer["message"] != c.want {
				t.Errorf("%d %v, want %q", status, answer, c.want)
			}
			if after := s.Item("locks", "k"); !reflect.DeepEqual(after, before) {
				t.Errorf("item = %v, was %v", after, before)
			}
		})
	}
}

func TestParameterErrors(t *testing.T) {
	t.Parallel()
	const set = `"TableName":"locks","Key":{"id":{"S":"k"}},"UpdateExpression":"SET a = :v"`
	withKey := func(key string) string { return `"TableName":"locks","Key":` + key }
	withValue := func(v string) string { return set + `,"ExpressionAttributeValues":{":v":` + v + `}` }
	const remove = `"TableName":"locks","Key":{"id":{"S":"k"}},"UpdateExpression":"REMOVE a"`
	const oneKind = "Supplied AttributeValue must contain exactly one of the supported datatypes: "
	cases := []struct{ name, members, want string }{
		{"no key", `"TableName":"locks"`, "The provided key element does not match the schema"},
		{"number key", withKey(`{"id":{"N":"1"}}`), "The provided key element does not match the schema"},
		{"wrong key name", withKey(`{"ix":{"S":"k"}}`), "The provided key element does not match the schema"},
		{"additional key", withKey(`{"id":{"S":"k"},"b":{"S":"k"}}`), "The provided key element does not match the schema"},
		{"key of two types", withKey(`{"id":{"S":"k","N":"1"}}`), "The provided key element does not match the schema"},
		{"empty key", withKey(`{"id":{"S":""}}`), "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"},
		{"long key", withKey(`{"id":{"S":"` + strings.Repeat("é", 1024) + `x"}}`), "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"},
		{"ReturnValues", set + `,"ReturnValues":"UPDATED_NEW"`, `fakedynamo does not support ReturnValues "UPDATED_NEW"`},
		{"ReturnValuesOnConditionCheckFailure", set + `,"ReturnValuesOnConditionCheckFailure":"FOO"`, `fakedynamo does not support ReturnValuesOnConditionCheckFailure "FOO"`},
		{"member", set + `,"ReturnConsumedCapacity":"TOTAL"`, `fakedynamo does not support the member "ReturnConsumedCapacity"`},
		{"no update", withKey(`{"id":{"S":"k"}}`), "Invalid UpdateExpression: The expression can not be empty;"},
		{"no names", withValue(`{"S":"x"}`) + `,"ExpressionAttributeNames":{}`, "ExpressionAttributeNames must not be empty"},
		{"no values", remove + `,"ExpressionAttributeValues":{}`, "ExpressionAttributeValues must not be empty"},
		{"name without mark", remove + `,"ExpressionAttributeNames":{"a":"b"}`, "Value provided in ExpressionAttributeNames unused in expressions: keys: {a}"},
		{
			"name of nothing", withKey(`{"id":{"S":"k"}}`) + `,"UpdateExpression":"REMOVE #a","ExpressionAttributeNames":{"#a":""}`,
			"Invalid UpdateExpression: An expression attribute name used in the document path is not defined; attribute name: #a",
		},
		{"null value", withValue(`null`), oneKind + ":v"},
		{"empty value", withValue(`{"M":{"x":{}}}`), oneKind + "x"},
		{"two types", withValue(`{"S":"x","N":"1"}`), oneKind + ":v"},
		{"BOOL", withValue(`{"BOOL":true}`), `fakedynamo does not support the member "BOOL"`},
		{"NULL", withValue(`{"NULL":true}`), `fakedynamo does not support the member "NULL"`},
		{"L", withValue(`{"M":{"x":{"L":[]}}}`), `fakedynamo does not support the member "L"`},
		{"set", withValue(`{"SS":["x"]}`), `fakedynamo does not support the member "SS"`},
		{"nameless member", withValue(`{"M":{"":{"S":"x"}}}`), "Empty attribute name"},
		{"not a number", withValue(`{"N":"x"}`), "The parameter cannot be converted to a numeric value: x"},
		{"nesting", withValue(nested(maxNesting + 1)), "Nesting Levels have exceeded supported limits"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			status, answer := send(t, s, "UpdateItem", `{`+c.members+`}`)
			if status != 400 || answer["__type"] != validateType+"ValidationException" || answer["message"] != c.want {
				t.Errorf("%d %v, want %q", status, answer, c.want)
			}
			if s.Item("locks", "k") != nil {
				t.Error("the item was written")
			}
		})
	}
}

// nested returns a value within so many maps.
func nested(levels int) string {
	return strings.Repeat(`{"M":{"m":`, levels) + `{"N":"1"}` + strings.Repeat(`}}`, levels)
}

// TestUpdateErrorsAndCondition: an error of the update itself is reported
// whether or not the condition holds; one that depends on the item only if it
// does.
func TestUpdateErrorsAndCondition(t *testing.T) {
	t.Parallel()
	for update, kind := range map[string]string{
		"SET s = if_not_exists(s, :v) + :v": dynamoType + "ConditionalCheckFailedException",
		"SET name = :v":                     validateType + "ValidationException",
		"SET id = :v":                       validateType + "ValidationException",
	} {
		t.Run(update, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			put(t, s, `{"s":{"S":"x"}}`)
			_, answer := updateItem(t, s, `"UpdateExpression":"`+update+`","ConditionExpression":"attribute_exists(q)","ExpressionAttributeValues":{":v":{"N":"1"}}`)
			if answer["__type"] != kind {
				t.Errorf("%v, want %s", answer, kind)
			}
		})
	}
}

func TestReturnValues(t *testing.T) {
	t.Parallel()
	const before = `{"a":{"N":"1"},"b":{"B":""},"m":{"M":{"x":{"S":"\"\\\n<é>"},"y":{"B":"YQ=="},"z":{"M":{}}}}}`
	const change = `"UpdateExpression":"SET a = :v","ExpressionAttributeValues":{":v":{"S":""}}`
	cases := []struct{ name, before, members, want string }{
		{"none", before, change, `{}`},
		{"NONE", before, change + `,"ReturnValues":"NONE"`, `{}`},
		{"ALL_NEW", before, change + `,"ReturnValues":"ALL_NEW"`, `{"Attributes":{"id":{"S":"k"},` + strings.Replace(before[1:], `{"N":"1"}`, `{"S":""}`, 1) + `}`},
		{"ALL_OLD", before, change + `,"ReturnValues":"ALL_OLD"`, `{"Attributes":{"id":{"S":"k"},` + before[1:] + `}`},
		{"ALL_OLD of nothing", `{}`, change + `,"ReturnValues":"ALL_OLD"`, `{}`},
		{"ALL_NEW of nothing", `{}`, change + `,"ReturnValues":"ALL_NEW"`, `{"Attributes":{"id":{"S":"k"},"a":{"S":""}}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			put(t, s, c.before)
			status, answer := updateItem(t, s, c.members)
			if status != 200 || !reflect.DeepEqual(answer, decoded(t, c.want)) {
				t.Errorf("%d %s, want %s", status, marshal(t, answer), c.want)
			}
		})
	}
}

func TestLargestKeyAndDeepestValue(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key := strings.Repeat("x", maxKeyBytes)
	if status, answer := send(t, s, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"`+key+`"}},"UpdateExpression":"SET a = :v","ExpressionAttributeValues":{":v":`+nested(maxNesting)+`}}`); status != 200 {
		t.Errorf("%d %v", status, answer)
	}
	if s.Item("locks", key) == nil {
		t.Error("no item")
	}
}

// TestItemSize checks sizes that were measured with DynamoDB Local, by filling
// an item up to the limit.
func TestItemSize(t *testing.T) {
	t.Parallel()
	cases := []struct {
		value string
		size  int
	}{
		{`{"S":"é"}`, 2},
		{`{"B":"YWJj"}`, 3},
		{`{"N":"0"}`, 1},
		{`{"N":"1"}`, 2},
		{`{"N":"12"}`, 2},
		{`{"N":"123"}`, 3},
		{`{"N":"-1"}`, 3},
		{`{"N":"-123"}`, 4},
		{`{"N":"100"}`, 2},
		{`{"N":"1000"}`, 2},
		{`{"N":"1.5"}`, 3},
		{`{"N":"0.01"}`, 2},
		{`{"N":"1234567890123456"}`, 9},
		{`{"N":"11111111111111111111111111111111111111"}`, 20},
		{`{"M":{}}`, 3},
		{`{"M":{"k":{"S":"x"}}}`, 6},
		{`{"M":{"k":{"S":"x"},"j":{"S":"x"}}}`, 9},
		{`{"M":{"a":{"M":{}}}}`, 8},
	}
	for _, c := range cases {
		t.Run(c.value, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			// id, k, fill, v and the value leave this much to fill up.
			fill := maxItemBytes - len("id"+"k"+"f"+"v") - c.size
			for _, over := range []int{1, 0} {
				status, answer := updateItem(t, s, `"UpdateExpression":"SET f = :f, v = :v","ExpressionAttributeValues":{":v":`+c.value+`,":f":{"S":"`+strings.Repeat("x", fill+over)+`"}}`)
				if over == 0 && status != 200 || over == 1 && answer["message"] != "Item size to update has exceeded the maximum allowed size" {
					t.Errorf("%d over: %d %v", over, status, answer)
				}
			}
		})
	}
}
