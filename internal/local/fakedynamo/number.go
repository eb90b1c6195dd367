package fakedynamo

import (
	"math/big"
	"strings"
)

// number is an exact number as the service writes it: without an exponent and
// without needless zeros, so that equal numbers are equal strings.
type number string

// UnmarshalText reads a number as the service does and checks its limits.
func (n *number) UnmarshalText(text []byte) error {
	digits := string(text)
	r, ok := new(big.Rat).SetString(digits)
	if !ok || strings.Trim(digits, "0123456789+-.eE") != "" { // big.Rat also reads 1/2 and 0x1
		return invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	var err error
	*n, err = newNumber(r)
	return err
}

func newNumber(r *big.Rat) (number, error) {
	decimals, _ := r.FloatPrec() // as many as there are
	n := number(r.FloatString(decimals))
	switch first, last := n.span(); {
	case first > 125:
		return "", invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case first < -130:
		return "", invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	case first-last >= 38:
		return "", invalid("Attempting to store more than 38 significant digits in a Number")
	}
	return n, nil
}

// rat returns the number for arithmetic.
func (n number) rat() *big.Rat {
	r, _ := new(big.Rat).SetString(string(n))
	return r
}

// negative returns the number with the other sign.
func (n number) negative() number {
	if digits, ok := strings.CutPrefix(string(n), "-"); ok || n == "0" {
		return number(digits)
	}
	return "-" + n
}

// span returns the powers of ten of the first and the last digit that is not 0,
// and -1 and 0 for zero.
func (n number) span() (first, last int) {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(string(n), "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	last = len(digits) - len(strings.TrimRight(digits, "0")) - len(fraction)
	return len(digits) - len(fraction) - 1, last
}

// size returns what the number adds to the size of an item: a byte for each
// pair of digits, counted from the decimal point outwards, one more, and one
// for a minus.
func (n number) size() int {
	first, last := n.span()
	size := first>>1 - last>>1 + 2 // >> rounds down below zero as well
	if n[0] == '-' {
		size++
	}
	return size
}
