package fakedynamo

import (
	"strings"
	"testing"
)

const conditionItem = `{"n":{"N":"10"},"s":{"S":"b"},"b":{"B":"YWI="},"m":{"M":{"x":{"N":"1"},"e":{"M":{}}}}}`

func TestConditions(t *testing.T) {
	t.Parallel()
	cases := []struct {
		condition string
		value     string // of :v, "" if the condition does not use it
		want      bool
	}{
		{"n = :v", `{"N":"1.0e1"}`, true},
		{"n = :v", `{"S":"10"}`, false},
		{"q = :v", `{"N":"1"}`, false},
		{"n <> :v", `{"N":"1.0e1"}`, false},
		{"n <> :v", `{"N":"9"}`, true},
		{"n <> :v", `{"S":"10"}`, true},
		{"q <> :v", `{"N":"1"}`, true},
		{"m <> :v", `{"M":{"x":{"N":"1"}}}`, true},
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
		{"q < :v", `{"N":"1"}`, false},
		{"q >= :v", `{"N":"1"}`, false},
		{"m < :v", `{"N":"1"}`, false},
		{"s < :v", `{"S":"ba"}`, true},
		{"s < :v", `{"S":"é"}`, true}, // bytewise: é comes after all of ASCII
		{"s > :v", `{"S":"B"}`, true},
		{"b < :v", `{"B":"YWM="}`, true},
		{"b = :v", `{"B":"YWI="}`, true},
		{"m = :v", `{"M":{"x":{"N":"1.00"},"e":{"M":{}}}}`, true},
		{"m = :v", `{"M":{"x":{"N":"1"},"e":{"M":{"x":{"N":"1"}}}}}`, false},
		{"m = :v", `{"M":{"x":{"N":"1"}}}`, false},
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
		// AND binds closer than OR.
		{"attribute_exists(n) OR attribute_exists(q) AND attribute_exists(q)", ``, true},
		{"(attribute_exists(n) OR attribute_exists(q)) AND attribute_exists(q)", ``, false},
		{"attribute_exists(q) AND attribute_exists(n) OR attribute_not_exists(q)", ``, true},
		{"((attribute_exists(q)) OR attribute_exists(n))", ``, true},
		{"(attribute_exists(q) OR (attribute_exists(n)))", ``, true},
		{"((attribute_exists(n)) AND (attribute_exists(n)))", ``, true},
		{"attribute_exists(q)\tOR\r\nattribute_exists(n)", ``, true},
	}
	for _, c := range cases {
		t.Run(c.condition+" "+c.value, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			put(t, s, conditionItem)
			members := `"UpdateExpression":"REMOVE q","ConditionExpression":` + marshal(t, c.condition)
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
		{"   ", "The expression can not be empty;"},
		{strings.Repeat(" ", 4097), "Expression size has exceeded the maximum allowed size; expression size: 4097"},
		{"n", `fakedynamo does not support "<EOF>" after "n"`},
		{"n =", `fakedynamo does not support "<EOF>" after "n ="`},
		{"= :v", `fakedynamo does not support "=" after ""`},
		{"n = :v AND", `fakedynamo does not support "<EOF>" after "n = :v AND"`},
		{"(n = :v", `fakedynamo does not support "<EOF>" after "( n = :v"`},
		{"(n AND n", `fakedynamo does not support "AND" after "( n"`},
		{"n = :v)", `fakedynamo does not support ")" after "n = :v"`},
		{"n = :v and n = :v", `fakedynamo does not support "and" after "n = :v"`},
		{"n == :v", `fakedynamo does not support "=" after "n ="`},
		{"n < = :v", `fakedynamo does not support "=" after "n <"`},
		{"n >< :v", `fakedynamo does not support "<" after "n >"`},
		{"n = s", `fakedynamo does not support "s" after "n ="`},
		{":v = n", `fakedynamo does not support ":v" after ""`},
		{"n = 10", `fakedynamo does not support "1" after "n ="`},
		{"n = :", `fakedynamo does not support ":" after "n ="`},
		{"é = :v", `fakedynamo does not support "é" after ""`},
		{"m. = :v", `fakedynamo does not support "=" after "m ."`},
		{"m[0] = :v", `fakedynamo does not support "[" after "m"`},
		{"n IN (:v)", `fakedynamo does not support "IN" after "n"`},
		{"n BETWEEN :v AND :v", `fakedynamo does not support "BETWEEN" after "n"`},
		{"size(n) = :v", `fakedynamo does not support "size" after ""`},
		{"NOT attribute_exists(n)", `fakedynamo does not support "NOT" after ""`},
		{"attribute_exists n", `fakedynamo does not support "n" after "attribute_exists"`},
		{"attribute_exists()", `fakedynamo does not support ")" after "attribute_exists ("`},
		{"attribute_exists(n", `fakedynamo does not support "<EOF>" after "attribute_exists ( n"`},
		{"attribute_exists(:v)", `fakedynamo does not support ":v" after "attribute_exists ("`},
		{"attribute_exists(n, s)", `fakedynamo does not support "," after "attribute_exists ( n"`},
		{"((n = :v))", "The expression has redundant parentheses;"},
		{"n = :v OR ((n = :v) )", "The expression has redundant parentheses;"},
		{"name = :v", "Attribute name is a reserved keyword; reserved keyword: name"},
		{"x.Name = :v", "Attribute name is a reserved keyword; reserved keyword: Name"},
		{"n = :w", "An expression attribute value used in expression is not defined; attribute value: :w"},
		{"#n = :v", "An expression attribute name used in the document path is not defined; attribute name: #n"},
		{"attribute_exists(#n)", "An expression attribute name used in the document path is not defined; attribute name: #n"},
		{"n < :m AND n = :w", "Incorrect operand type for operator or function; operator or function: <, operand type: M"},
		{"attribute_not_exists(n) OR n = :w", "An expression attribute value used in expression is not defined; attribute value: :w"},
		{"attribute_exists(n) AND n = :w", "An expression attribute value used in expression is not defined; attribute value: :w"},
	}
	for _, c := range cases {
		t.Run(c.condition, func(t *testing.T) {
			t.Parallel()
			status, answer := updateItem(t, newServer(t), `"UpdateExpression":"REMOVE q","ConditionExpression":`+marshal(t, c.condition)+
				`,"ExpressionAttributeValues":{":v":{"N":"1"},":m":{"M":{}}}`)
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
