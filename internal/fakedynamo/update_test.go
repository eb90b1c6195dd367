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
		{"no expression", `{}`, `"ReturnValues":"NONE"`, `{"id":{"S":"k"}}`},
		{"keeps the rest", `{"b":{"S":"x"}}`, `"UpdateExpression":"SET a = :v",` + values, `{"id":{"S":"k"},"a":{"N":"5"},"b":{"S":"x"}}`},
		{"any case", `{"b":{"S":"x"}}`, `"UpdateExpression":"set a=:v remove b",` + values, `{"id":{"S":"k"},"a":{"N":"5"}}`},
		{"key is readable", `{}`, `"UpdateExpression":"SET a = id"`, `{"id":{"S":"k"},"a":{"S":"k"}}`},
		{"sum", `{"a":{"N":"2"}}`, `"UpdateExpression":"SET a = a + :v",` + values, `{"id":{"S":"k"},"a":{"N":"7"}}`},
		{"difference", `{"a":{"N":"2.5"}}`, `"UpdateExpression":"SET b = a - :v",` + values, `{"id":{"S":"k"},"a":{"N":"2.5"},"b":{"N":"-2.5"}}`},
		{"if_not_exists, missing", `{}`, `"UpdateExpression":"SET a = if_not_exists(a, :v) + :v",` + values, `{"id":{"S":"k"},"a":{"N":"10"}}`},
		{"if_not_exists, present", `{"b":{"N":"1"}}`, `"UpdateExpression":"SET a = if_not_exists(b, :v)",` + values, `{"id":{"S":"k"},"a":{"N":"1"},"b":{"N":"1"}}`},
		{"if_not_exists, nested", `{}`, `"UpdateExpression":"SET a = if_not_exists(b, if_not_exists(c, :v))",` + values, `{"id":{"S":"k"},"a":{"N":"5"}}`},
		{"if_not_exists, path", `{"c":{"S":"x"}}`, `"UpdateExpression":"SET a = if_not_exists(b, c)"`, `{"id":{"S":"k"},"a":{"S":"x"},"c":{"S":"x"}}`},
		{"swap", `{"a":{"N":"1"},"b":{"N":"2"}}`, `"UpdateExpression":"SET a = b, b = a"`, `{"id":{"S":"k"},"a":{"N":"2"},"b":{"N":"1"}}`},
		{"remove what is read", `{"a":{"N":"1"}}`, `"UpdateExpression":"REMOVE a SET b = a"`, `{"id":{"S":"k"},"b":{"N":"1"}}`},
		{"remove several", `{"a":{"N":"1"},"b":{"N":"2"}}`, `"UpdateExpression":"REMOVE a, b, c"`, `{"id":{"S":"k"}}`},
		{
			"nested", `{"m":{"M":{"x":{"N":"1"},"y":{"M":{}}}}}`, `"UpdateExpression":"SET m.y.z = :v, m.w = :v REMOVE m.x",` + values,
			`{"id":{"S":"k"},"m":{"M":{"w":{"N":"5"},"y":{"M":{"z":{"N":"5"}}}}}}`,
		},
		{
			"placeholder is one element", `{"m":{"M":{}}}`, `"UpdateExpression":"SET m.#e = :v","ExpressionAttributeNames":{"#e":"a.b name"},` + values,
			`{"id":{"S":"k"},"m":{"M":{"a.b name":{"N":"5"}}}}`,
		},
		{"reserved word by placeholder", `{}`, `"UpdateExpression":"SET #e = :v","ExpressionAttributeNames":{"#e":"name"},` + values, `{"id":{"S":"k"},"name":{"N":"5"}}`},
		{"remove a missing nested attribute", `{"m":{"M":{}}}`, `"UpdateExpression":"REMOVE m.x"`, `{"id":{"S":"k"},"m":{"M":{}}}`},
		{"remove a nested attribute of nothing", `{}`, `"UpdateExpression":"REMOVE m.x.y"`, `{"id":{"S":"k"}}`},
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
		{"  ", invalid + `Syntax error; token: "<EOF>", near: "  "`},
		{"SET", invalid + `Syntax error; token: "<EOF>", near: "SET"`},
		{"SET a", invalid + `Syntax error; token: "<EOF>", near: "a"`},
		{"SET a =", invalid + `Syntax error; token: "<EOF>", near: "="`},
		{"SET a = :v,", invalid + `Syntax error; token: "<EOF>", near: ","`},
		{"SET a = :v b = :v", invalid + `Syntax error; token: "b", near: ":v b ="`},
		{"SET a = :v + :v + :v", invalid + `Syntax error; token: "+", near: ":v + :v"`},
		{"SET a = :v +", invalid + `Syntax error; token: "<EOF>", near: "+"`},
		{"FOO a = :v", invalid + `Syntax error; token: "FOO", near: "FOO a"`},
		{"ADD a :v", invalid + `Syntax error; token: "ADD", near: "ADD a"`},
		{"SET a = :v ADD b :v", invalid + `Syntax error; token: "ADD", near: ":v ADD b"`},
		{"SET _a = :v", invalid + `Syntax error; token: "_", near: "SET _a"`},
		{"SET 1a = :v", invalid + `Syntax error; token: "1", near: "SET 1a"`},
		{"SET # = :v", invalid + `Syntax error; token: "#", near: "SET # ="`},
		{"SET a[0] = :v", invalid + `Syntax error; token: "[", near: "a[0"`},
		{"SET a = if_not_exists(b :v)", invalid + `Syntax error; token: ":v", near: "b :v)"`},
		{"REMOVE :v", invalid + `Syntax error; token: ":v", near: "REMOVE :v"`},
		{"SET a = :v SET b = :v", invalid + `The "SET" section can only be used once in an update expression;`},
		{"SET token = :v SET b = :v", invalid + "Attribute name is a reserved keyword; reserved keyword: token"},
		{"SET a = f(:v)", invalid + "Invalid function name; function: f"},
		{"SET a = attribute_exists(b)", invalid + "The function is not allowed in an update expression; function: attribute_exists"},
		{"SET #a = :w", invalid + "An expression attribute name used in the document path is not defined; attribute name: #a"},
		{"SET a = :w", invalid + "An expression attribute value used in expression is not defined; attribute value: :w"},
		{"SET a = :w, a.b = :v", invalid + "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a, b]"},
		{"SET a.b = :v REMOVE a", invalid + "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a]"},
		{"SET a = if_not_exists(:v, :v)", invalid + "Operator or function requires a document path; operator or function: if_not_exists"},
		{"SET a = if_not_exists(b)", invalid + "Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 1"},
		{"SET a = if_not_exists(b, if_not_exists(c))", invalid + "Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 1"},
		{"SET a = b + :s", invalid + "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
		{"SET a = :v", "Value provided in ExpressionAttributeValues unused in expressions: keys: {:s}"},
		{"SET a = :v, b = :s, id = :v", "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key"},
		{"SET a = :v, b = :s REMOVE id.x", "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key"},
		{"SET a = :v, b = :s, c = q", "The provided expression refers to an attribute that does not exist in the item"},
		{"SET a = :v + q, b = :s", "The provided expression refers to an attribute that does not exist in the item"},
		{"SET a = :v + s, b = :s", "An operand in the update expression has an incorrect data type"},
		{"SET a = :v + big, b = :s", "Attempting to store more than 38 significant digits in a Number"},
		{"SET q.x = :v, b = :s", "The document path provided in the update expression is invalid for update"},
		{"SET s.x = :v, b = :s", "The document path provided in the update expression is invalid for update"},
		{"SET a = :v, b = :s REMOVE q.x", "The document path provided in the update expression is invalid for update"},
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
	const badValue = "ExpressionAttributeValues contains invalid value: "
	cases := []struct{ name, members, want string }{
		{"no table", `"Key":{"id":{"S":"k"}}`, "1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null"},
		{"no key", `"TableName":"locks"`, "1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null"},
		{"empty key map", withKey(`{}`), "The provided key element does not match the schema"},
		{"number key", withKey(`{"id":{"N":"1"}}`), "The provided key element does not match the schema"},
		{"wrong key name", withKey(`{"ix":{"S":"k"}}`), "The provided key element does not match the schema"},
		{"additional key", withKey(`{"id":{"S":"k"},"b":{"S":"k"}}`), "The provided key element does not match the schema"},
		{"key without value", withKey(`{"id":{}}`), "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{"empty key", withKey(`{"id":{"S":""}}`), "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"},
		{"long key", withKey(`{"id":{"S":"` + strings.Repeat("é", 1024) + `x"}}`), "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"},
		{"ReturnValues", set + `,"ReturnValues":"FOO"`, "1 validation error detected: Value 'FOO' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"},
		{"UPDATED_OLD", set + `,"ReturnValues":"UPDATED_OLD"`, "fakedynamo does not return UPDATED_OLD"},
		{"ReturnValuesOnConditionCheckFailure", set + `,"ReturnValuesOnConditionCheckFailure":"FOO"`, "1 validation error detected: Value 'FOO' at 'returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, NONE]"},
		{"names without expression", withKey(`{"id":{"S":"k"}}`) + `,"ExpressionAttributeNames":{"#a":"a"}`, "ExpressionAttributeNames can only be specified when using expressions"},
		{"values without expression", withKey(`{"id":{"S":"k"}}`) + `,"ExpressionAttributeValues":{":a":{"S":"a"}}`, "ExpressionAttributeValues can only be specified when using expressions: UpdateExpression and ConditionExpression are null"},
		{"no names", set + `,"ExpressionAttributeNames":{}`, "ExpressionAttributeNames must not be empty"},
		{"no values", set + `,"ExpressionAttributeValues":{}`, "ExpressionAttributeValues must not be empty"},
		{"name without mark", set + `,"ExpressionAttributeNames":{"a":"b"}`, `ExpressionAttributeNames contains invalid key: Syntax error; key: "a"`},
		{"mark without name", set + `,"ExpressionAttributeNames":{"#":"b"}`, `ExpressionAttributeNames contains invalid key: Syntax error; key: "#"`},
		{"name of nothing", set + `,"ExpressionAttributeNames":{"#a":""}`, "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a"},
		{"unused names", withValue(`{"S":"x"}`) + `,"ExpressionAttributeNames":{"#y":"y","#x":"x"}`, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#x, #y}"},
		{"value without mark", set + `,"ExpressionAttributeValues":{"v":{"S":"x"}}`, `ExpressionAttributeValues contains invalid key: Syntax error; key: "v"`},
		{"null value", withValue(`null`), badValue + "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes for key :v"},
		{"empty value", withValue(`{"M":{"x":{}}}`), badValue + "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes for key :v"},
		{"empty element", withValue(`{"L":[{}]}`), badValue + "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes for key :v"},
		{"two types", withValue(`{"S":"x","N":"1"}`), badValue + "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes for key :v"},
		{"NULL false", withValue(`{"NULL":false}`), badValue + "One or more parameter values were invalid: Null attribute value types must have the value of true for key :v"},
		{"nameless member", withValue(`{"M":{"":{"S":"x"}}}`), badValue + "Empty attribute name for key :v"},
		{"not a number", withValue(`{"N":"x"}`), badValue + "The parameter cannot be converted to a numeric value: x for key :v"},
		{"not Base64", withValue(`{"B":"!"}`), badValue + "Invalid Base64 in a binary value for key :v"},
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

func TestReturnValues(t *testing.T) {
	t.Parallel()
	const before = `{"a":{"N":"1"},"m":{"M":{"x":{"S":"\"\\\n<é>"},"y":{"B":"YQ=="}}},"l":{"L":[{"BOOL":false},{"NULL":true}]}}`
	const change = `"UpdateExpression":"SET a = :v, m.x = :v REMOVE m.y","ExpressionAttributeValues":{":v":{"S":"new"}},`
	cases := []struct{ name, before, members, want string }{
		{"NONE", before, change + `"ReturnValues":"NONE"`, `{}`},
		{"ALL_NEW", before, change + `"ReturnValues":"ALL_NEW"`, `{"Attributes":{"id":{"S":"k"},"a":{"S":"new"},"m":{"M":{"x":{"S":"new"}}},"l":{"L":[{"BOOL":false},{"NULL":true}]}}}`},
		{"ALL_OLD", before, change + `"ReturnValues":"ALL_OLD"`, `{"Attributes":{"id":{"S":"k"},` + before[1:] + `}`},
		{"ALL_OLD of nothing", `{}`, `"ReturnValues":"ALL_OLD"`, `{}`},
		{"UPDATED_NEW", before, change + `"ReturnValues":"UPDATED_NEW"`, `{"Attributes":{"a":{"S":"new"},"m":{"M":{"x":{"S":"new"}}}}}`},
		{"UPDATED_NEW of removals", before, `"UpdateExpression":"REMOVE a, m.x","ReturnValues":"UPDATED_NEW"`, `{}`},
		{"UPDATED_NEW without update", before, `"ReturnValues":"UPDATED_NEW"`, `{}`},
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

func TestLargestKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key := strings.Repeat("x", maxKeyBytes)
	if status, answer := send(t, s, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"`+key+`"}}}`); status != 200 {
		t.Errorf("%d %v", status, answer)
	}
	if s.Item("locks", key) == nil {
		t.Error("no item")
	}
}

// The sizes were measured with DynamoDB Local, by filling an item up to the limit.
func TestItemSize(t *testing.T) {
	t.Parallel()
	cases := []struct {
		value string
		size  int
	}{
		{`{"S":"é"}`, 2},
		{`{"B":"YWJj"}`, 3},
		{`{"BOOL":true}`, 1},
		{`{"NULL":true}`, 1},
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
		{`{"M":{"a":{"L":[]}}}`, 8},
		{`{"L":[]}`, 3},
		{`{"L":[{"S":"x"}]}`, 5},
		{`{"L":[{"S":"x"},{"S":"y"}]}`, 7},
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
