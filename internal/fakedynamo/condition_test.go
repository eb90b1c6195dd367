package fakedynamo

import (
	"strings"
	"testing"
)

const conditionItem = `{"n":{"N":"10"},"s":{"S":"b"},"b":{"B":"YWI="},"m":{"M":{"x":{"N":"1"}}},"l":{"L":[{"N":"1"}]},"t":{"BOOL":true},"z":{"NULL":true}}`

func TestConditions(t *testing.T) {
	t.Parallel()
	cases := []struct {
		condition string
		value     string // of :v, "" if the condition does not use it
		want      bool
	}{
		{"n = :v", `{"N":"1.0e1"}`, true},
		{"n = :v", `{"S":"10"}`, false},
		{":v = n", `{"N":"10"}`, true},
		{"n = s", ``, false},
		{"q = :v", `{"N":"1"}`, false},
		{"q = r", ``, false},
		{"n <> :v", `{"N":"10"}`, false},
		{"n <> :v", `{"N":"11"}`, true},
		{"n <> :v", `{"S":"10"}`, true}, // another type differs
		{"q <> :v", `{"N":"1"}`, true},  // a missing attribute differs
		{"q <> r", ``, true},            // even from another one
		{"n < :v", `{"N":"9"}`, false},
		{"n < :v", `{"N":"10.000000000000000000000000000000000001"}`, true},
		{"n < :v", `{"N":"10"}`, false},
		{"n <= :v", `{"N":"10"}`, true},
		{"n <= :v", `{"N":"-11"}`, false},
		{"n > :v", `{"N":"9"}`, true},
		{"n > :v", `{"N":"10"}`, false},
		{"n >= :v", `{"N":"10"}`, true},
		{"n >= :v", `{"N":"100"}`, false},
		{"n < :v", `{"S":"z"}`, false},
		{"NOT n < :v", `{"S":"z"}`, true},
		{"q < :v", `{"N":"1"}`, false},
		{"q >= :v", `{"N":"1"}`, false},
		{"n < q", ``, false},
		{"s < :v", `{"S":"ba"}`, true},
		{"s < :v", `{"S":"é"}`, true}, // bytewise: é comes after all of ASCII
		{"s > :v", `{"S":"B"}`, true},
		{"b < :v", `{"B":"YWM="}`, true},
		{"b = :v", `{"B":"YWI="}`, true},
		{"t = :v", `{"BOOL":true}`, true},
		{"t = :v", `{"BOOL":false}`, false},
		{"z = :v", `{"NULL":true}`, true},
		{"m = :v", `{"M":{"x":{"N":"1.00"}}}`, true},
		{"m = :v", `{"M":{"x":{"N":"2"}}}`, false},
		{"m = :v", `{"M":{"y":{"N":"1"}}}`, false},
		{"l = :v", `{"L":[{"N":"1"}]}`, true},
		{"l = :v", `{"L":[{"N":"2"}]}`, false},
		{"l = :v", `{"L":[]}`, false},
		{"m < l", ``, false},
		{"m = m.x", ``, false},
		{"m.x = :v", `{"N":"1"}`, true},
		{"m.x.y = :v", `{"N":"1"}`, false},
		{"q.x = :v", `{"N":"1"}`, false},
		{"attribute_exists(n)", ``, true},
		{"attribute_exists(q)", ``, false},
		{"attribute_exists(m.x)", ``, true},
		{"attribute_exists(m.y)", ``, false},
		{"attribute_not_exists(n)", ``, false},
		{"attribute_not_exists(q)", ``, true},
		{"attribute_not_exists ( q . x )", ``, true},
		{"attribute_exists(id)", ``, true},
		// NOT binds closer than AND, AND closer than OR.
		{"NOT attribute_exists(q) AND attribute_exists(n)", ``, true},
		{"NOT (attribute_exists(q) OR attribute_exists(n))", ``, false},
		{"NOT NOT attribute_exists(n)", ``, true},
		{"attribute_exists(n) OR attribute_exists(q) AND attribute_exists(q)", ``, true},
		{"(attribute_exists(n) OR attribute_exists(q)) AND attribute_exists(q)", ``, false},
		{"attribute_exists(q) and attribute_exists(n) or not attribute_exists(q)", ``, true},
		{"((attribute_exists(q)) OR attribute_exists(n))", ``, true},
		{"attribute_exists(q)\tOR\r\nattribute_exists(n)", ``, true},
	}
	for _, c := range cases {
		t.Run(c.condition+" "+c.value, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			put(t, s, conditionItem)
			members := `"ConditionExpression":` + marshal(t, c.condition)
			if c.value != "" {
				members += `,"ExpressionAttributeValues":{":v":` + c.value + `}`
			}
			status, answer := updateItem(t, s, members)
			switch {
			case status == 200 && c.want:
			case answer["__type"] == dynamoType+"ConditionalCheckFailedException" && !c.want:
			default:
				t.Errorf("%d %v, want %t", status, answer, c.want)
			}
		})
	}
}

func TestConditionErrors(t *testing.T) {
	t.Parallel()
	cases := []struct{ condition, want string }{
		{"", "The expression can not be empty;"},
		{"   ", `Syntax error; token: "<EOF>", near: "   "`},
		{strings.Repeat(" ", 4097), "Expression size has exceeded the maximum allowed size; expression size: 4097"},
		{"n", `Syntax error; token: "<EOF>", near: "n"`},
		{"n =", `Syntax error; token: "<EOF>", near: "="`},
		{"= :v", `Syntax error; token: "=", near: "= :v"`},
		{"n = :v AND", `Syntax error; token: "<EOF>", near: "AND"`},
		{"n = :v OR", `Syntax error; token: "<EOF>", near: "OR"`},
		{"(n = :v", `Syntax error; token: "<EOF>", near: ":v"`},
		{"(n AND n", `Syntax error; token: "AND", near: "n AND n"`},
		{"n = :v)", `Syntax error; token: ")", near: ":v)"`},
		{"n = :v extra", `Syntax error; token: "extra", near: ":v extra"`},
		{"n == :v", `Syntax error; token: "=", near: "== :v"`},
		{"n = 10", `Syntax error; token: "10", near: "= 10"`},
		{"n = é", `Syntax error; token: "é", near: "= é"`},
		{"n. = :v", `Syntax error; token: "=", near: ". = :v"`},
		{"and = :v", `Syntax error; token: "and", near: "and ="`},
		{"n BETWEEN :v AND :v", `Syntax error; token: "BETWEEN", near: "n BETWEEN :v"`},
		{"attribute_exists n", `Syntax error; token: "n", near: "attribute_exists n"`},
		{"attribute_exists()", `Syntax error; token: ")", near: "()"`},
		{"attribute_exists(n", `Syntax error; token: "<EOF>", near: "n"`},
		{"((n = :v))", "The expression has redundant parentheses;"},
		{"name = :v", "Attribute name is a reserved keyword; reserved keyword: name"},
		{"x.Name = foo(n)", "Attribute name is a reserved keyword; reserved keyword: Name"},
		{"foo(n) = :v", "Invalid function name; function: foo"},
		{"foo(n)", "Invalid function name; function: foo"},
		{"size(n)", "Invalid function name; function: size"},
		{"if_not_exists(n, :v) = :v", "The function is not allowed in a condition expression; function: if_not_exists"},
		{"attribute_exists(n) = :v", "The function is not allowed to be used this way in an expression; function: attribute_exists"},
		{":v = attribute_not_exists(n)", "The function is not allowed to be used this way in an expression; function: attribute_not_exists"},
		{"n = :w", "An expression attribute value used in expression is not defined; attribute value: :w"},
		{"#n = :v", "An expression attribute name used in the document path is not defined; attribute name: #n"},
		{"attribute_exists(#n)", "An expression attribute name used in the document path is not defined; attribute name: #n"},
		{"NOT attribute_exists(:v)", "Operator or function requires a document path; operator or function: attribute_exists"},
		{"attribute_exists(n, s)", "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2"},
		{"n = :v OR m.x = m.x", "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [m, x]"},
		{"n < :t AND n = :w", "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"},
	}
	for _, c := range cases {
		t.Run(c.condition, func(t *testing.T) {
			t.Parallel()
			status, answer := updateItem(t, newServer(t), `"ConditionExpression":`+marshal(t, c.condition)+
				`,"ExpressionAttributeValues":{":v":{"N":"1"},":t":{"BOOL":true}}`)
			if want := "Invalid ConditionExpression: " + c.want; status != 400 || answer["message"] != want {
				t.Errorf("%d %v, want %q", status, answer, want)
			}
		})
	}
}

func TestFailedCondition(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, item, option string
		withItem           bool
	}{
		{"item asked for", `{"a":{"S":"x"}}`, "ALL_OLD", true},
		{"item not asked for", `{"a":{"S":"x"}}`, "NONE", false},
		{"no item", `{}`, "ALL_OLD", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			put(t, s, c.item)
			before := marshal(t, s.Item("locks", "k"))
			status, answer := updateItem(t, s, `"UpdateExpression":"REMOVE a","ConditionExpression":"attribute_exists(q)","ReturnValuesOnConditionCheckFailure":"`+c.option+`"`)
			if status != 400 || answer["__type"] != dynamoType+"ConditionalCheckFailedException" || answer["message"] != "The conditional request failed" {
				t.Errorf("%d %v", status, answer)
			}
			if c.withItem && marshal(t, answer["Item"]) != before || !c.withItem && answer["Item"] != nil {
				t.Errorf("Item = %v", answer["Item"])
			}
			if after := marshal(t, s.Item("locks", "k")); after != before {
				t.Errorf("item = %s, was %s", after, before)
			}
		})
	}
}
