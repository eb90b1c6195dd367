package fakedynamo

import (
	"strings"
	"testing"
)

// parse returns the number in a text, and that in the service's form or the
// error.
func parse(text string) (number, string) {
	var n number
	if err := n.UnmarshalText([]byte(text)); err != nil {
		return n, err.Error()
	}
	return n, string(n)
}

func TestParseNumber(t *testing.T) {
	t.Parallel()
	cases := []struct{ text, want string }{
		{"0", "0"},
		{"-0", "0"},
		{"0e9", "0"},
		{"+1", "1"},
		{"007.50", "7.5"},
		{".5", "0.5"},
		{"5.", "5"},
		{"1e5", "100000"},
		{"1E+2", "100"},
		{"1e-5", "0.00001"},
		{"-12.34e1", "-123.4"},
		{"1200", "1200"},
		{"0.0012", "0.0012"},
		{strings.Repeat("1", 38) + "0", strings.Repeat("1", 38) + "0"},
		{"9.99e125", "999" + strings.Repeat("0", 123)},
		{"1e-130", "0." + strings.Repeat("0", 129) + "1"},
		{"1e126", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{"1e99999999999999999999", "The parameter cannot be converted to a numeric value: 1e99999999999999999999"}, // big.Rat gives up
		{"1e-131", "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
		{strings.Repeat("1", 39), "Attempting to store more than 38 significant digits in a Number"},
		{"", "The parameter cannot be converted to a numeric value: "},
		{"abc", "The parameter cannot be converted to a numeric value: abc"},
		{" 1", "The parameter cannot be converted to a numeric value:  1"},
		{".", "The parameter cannot be converted to a numeric value: ."},
		{"1.2.3", "The parameter cannot be converted to a numeric value: 1.2.3"},
		{"--1", "The parameter cannot be converted to a numeric value: --1"},
		{"-+1", "The parameter cannot be converted to a numeric value: -+1"},
		{"1e", "The parameter cannot be converted to a numeric value: 1e"},
		{"0x10", "The parameter cannot be converted to a numeric value: 0x10"},
		{"1/2", "The parameter cannot be converted to a numeric value: 1/2"},
		{"Inf", "The parameter cannot be converted to a numeric value: Inf"},
	}
	for _, c := range cases {
		if _, got := parse(c.text); got != c.want {
			t.Errorf("%q gives %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	cases := []struct{ a, b, want string }{
		{"0.1", "0.2", "0.3"},
		{"-1", "1", "0"},
		{"1e2", "-1e-2", "99.99"},
		{"1e37", "1", "1" + strings.Repeat("0", 36) + "1"},
		{strings.Repeat("9", 38), "1", "1" + strings.Repeat("0", 38)},
		{"1e38", "1", "Attempting to store more than 38 significant digits in a Number"},
		{"9.9e125", "9.9e125", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{"1e125", "0", "1" + strings.Repeat("0", 125)},
		{"1.1e-130", "-1e-130", "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
	}
	for _, c := range cases {
		a, _ := parse(c.a)
		b, _ := parse(c.b)
		e := newEvaluator(new(input))
		got := string(*e.sum(value{N: &a}, value{N: &b}).N)
		if e.mismatch != nil {
			got = e.mismatch.Error()
		}
		if got != c.want {
			t.Errorf("%s + %s = %s, want %s", c.a, c.b, got, c.want)
		}
	}
}
