package fakedynamo

import (
	"cmp"
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// The limits of the service's numbers.
const (
	maxDigits   = 38
	maxExponent = 125  // of the most significant digit
	minExponent = -130 // of the most significant digit
)

// decimal is the exact number ±0.digits × 10^exp. The digits start and end
// with one that is not 0, and zero has none, so equal numbers are equal values.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// parseDecimal reads a number as the service does and checks its limits.
func parseDecimal(text string) (decimal, error) {
	if text == "" {
		return decimal{}, refusal("The parameter cannot be converted to a numeric value")
	}
	bad := refusal("The parameter cannot be converted to a numeric value: " + text)
	mantissa, exponent, shift := text, "", 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
		n, err := strconv.Atoi(exponent)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return decimal{}, bad
		}
		shift = min(max(n, -1e6), 1e6) // far outside the limits, without overflow
	}
	unsigned := strings.TrimPrefix(mantissa, "-")
	negative := unsigned != mantissa
	if !negative {
		unsigned = strings.TrimPrefix(mantissa, "+")
	}
	whole, fraction, _ := strings.Cut(unsigned, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, bad
	}
	return newDecimal(negative, digits, len(whole)+shift)
}

// newDecimal brings a number into its one form and checks its limits.
func newDecimal(negative bool, digits string, exp int) (decimal, error) {
	trimmed := strings.TrimLeft(digits, "0")
	exp -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	switch {
	case trimmed == "":
		return decimal{}, nil
	case exp-1 > maxExponent:
		return decimal{}, refusal("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case exp-1 < minExponent:
		return decimal{}, refusal("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	case len(trimmed) > maxDigits:
		return decimal{}, refusal("Attempting to store more than 38 significant digits in a Number")
	}
	return decimal{negative: negative, digits: trimmed, exp: exp}, nil
}

// compare orders two numbers exactly.
func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() {
		return cmp.Compare(d.sign(), e.sign())
	}
	// Of equal exponents the digits decide, and they compare as strings do
	// because they start at the same place.
	magnitude := cmp.Or(cmp.Compare(d.exp, e.exp), cmp.Compare(d.digits, e.digits))
	return magnitude * d.sign()
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// add returns d+e, or d-e.
func (d decimal) add(e decimal, subtract bool) (decimal, error) {
	low := min(d.exp-len(d.digits), e.exp-len(e.digits)) // of the last digit of either
	x, y := d.scaled(low), e.scaled(low)
	if subtract {
		y.Neg(y)
	}
	sum := x.Add(x, y)
	negative := sum.Sign() < 0
	digits := sum.Abs(sum).String()
	return newDecimal(negative, digits, low+len(digits))
}

// scaled returns d × 10^-low, which is whole if low is at most the exponent of
// d's last digit.
func (d decimal) scaled(low int) *big.Int {
	n := new(big.Int)
	if d.digits == "" {
		return n
	}
	n.SetString(d.digits+strings.Repeat("0", d.exp-len(d.digits)-low), 10)
	if d.negative {
		n.Neg(n)
	}
	return n
}

// String writes the number without an exponent, as the service returns it.
func (d decimal) String() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	switch {
	case d.digits == "":
		return "0"
	case d.exp <= 0:
		return sign + "0." + strings.Repeat("0", -d.exp) + d.digits
	case d.exp < len(d.digits):
		return sign + d.digits[:d.exp] + "." + d.digits[d.exp:]
	}
	return sign + d.digits + strings.Repeat("0", d.exp-len(d.digits))
}

// size is the number's part in the size of an item: a byte for each pair of
// digits, paired from the decimal point outwards, one more, and one for a minus.
func (d decimal) size() int {
	if d.digits == "" {
		return 1
	}
	first, last := d.exp-1, d.exp-len(d.digits) // powers of ten
	size := first>>1 - last>>1 + 2              // >> rounds down below zero as well
	if d.negative {
		size++
	}
	return size
}
