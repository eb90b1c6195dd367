package fakedynamo

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	cases := []struct{ text, want string }{
		{"0", "0"},
		{"-0", "0"},
		{"0e999999999999999999999", "0"},
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
		{"1e99999999999999999999", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{"1e-131", "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
		{strings.Repeat("1", 39), "Attempting to store more than 38 significant digits in a Number"},
		{"", "The parameter cannot be converted to a numeric value"},
		{"abc", "The parameter cannot be converted to a numeric value: abc"},
		{" 1", "The parameter cannot be converted to a numeric value:  1"},
		{".", "The parameter cannot be converted to a numeric value: ."},
		{"1.2.3", "The parameter cannot be converted to a numeric value: 1.2.3"},
		{"--1", "The parameter cannot be converted to a numeric value: --1"},
		{"-+1", "The parameter cannot be converted to a numeric value: -+1"},
		{"1e", "The parameter cannot be converted to a numeric value: 1e"},
		{"0x10", "The parameter cannot be converted to a numeric value: 0x10"},
	}
	for _, c := range cases {
		d, err := parseDecimal(c.text)
		got := d.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("parseDecimal(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// Sums, differences and comparisons agree with math/big.
func TestDecimalArithmetic(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	number := func() string {
		return strconv.FormatInt(random.Int64N(2000)-1000, 10) + "e" + strconv.Itoa(random.IntN(9)-4)
	}
	for range 2000 {
		a, b := number(), number()
		x, _ := parseDecimal(a)
		y, _ := parseDecimal(b)
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		if got, want := x.compare(y), p.Cmp(q); got != want {
			t.Fatalf("%s compared with %s: %d, want %d", a, b, got, want)
		}
		for _, subtract := range []bool{false, true} {
			want := new(big.Rat).Add(p, q)
			if subtract {
				want.Sub(p, q)
			}
			sum, err := x.add(y, subtract)
			got, ok := new(big.Rat).SetString(sum.String())
			if err != nil || !ok || got.Cmp(want) != 0 {
				t.Fatalf("%s and %s, subtract %t: %s, %v; want %s", a, b, subtract, sum, err, want)
			}
		}
	}
}

func TestDecimalSumLimits(t *testing.T) {
	t.Parallel()
	cases := []struct{ a, b, want string }{
		{"1e37", "1", "1" + strings.Repeat("0", 36) + "1"},
		{strings.Repeat("9", 38), "1", "1" + strings.Repeat("0", 38)},
		{"1e38", "1", "Attempting to store more than 38 significant digits in a Number"},
		{"9.9e125", "9.9e125", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{"1e125", "0", "1" + strings.Repeat("0", 125)},
		{"1.1e-130", "-1e-130", "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
	}
	for _, c := range cases {
		a, _ := parseDecimal(c.a)
		b, _ := parseDecimal(c.b)
		sum, err := a.add(b, false)
		got := sum.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s + %s = %s, want %s", c.a, c.b, got, c.want)
		}
	}
}
