package canonical

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
)

// Number returns the canonical form of a JSON number: the same for equal
// values, and different for different ones. It never expands a large exponent,
// because a few bytes of input must not cost gigabytes.
func Number(text string) json.Number {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	written := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(written, "0")
	if digits == "" {
		return "0" // also -0
	}
	s := place(digits, add(exponent, len(written)-len(digits)-len(fraction)))
	if negative {
		s = "-" + s
	}
	return json.Number(s)
}

// place formats digits·10^exponent, in plain decimal notation if that fits into
// 40 characters.
func place(digits, exponent string) string {
	const enough = 40
	e, _ := strconv.Atoi(exponent) // clamped to the largest or smallest int if out of range
	if e >= 0 {
		if e == 0 || len(digits) <= enough-e {
			return digits + strings.Repeat("0", e)
		}
	} else if point := len(digits) + e; point > 0 { // the position of the decimal point
		if len(digits) < enough {
			return digits[:point] + "." + digits[point:]
		}
	} else if e >= len("0.")-enough {
		return "0." + strings.Repeat("0", -point) + digits
	}
	return digits + "e" + exponent
}

// add returns exponent + n. The exponent may have more digits than any integer
// type holds, and parsing it with math/big would take more than linear time.
func add(exponent string, n int) string {
	const small = 1e18 // n counts bytes, so the sum of anything smaller fits
	if e, err := strconv.ParseInt(cmp.Or(exponent, "0"), 10, 64); err == nil && -small < e && e < small {
		return strconv.FormatInt(e+int64(n), 10)
	}
	sign := ""
	if exponent[0] == '-' {
		sign, n = "-", -n
	}
	sum := []byte("0" + strings.TrimLeft(exponent, "+-"))
	for i := len(sum) - 1; n != 0; i-- {
		n += int(sum[i] - '0')
		digit := (n%10 + 10) % 10
		sum[i] = '0' + byte(digit)
		n = (n - digit) / 10
	}
	return sign + strings.TrimLeft(string(sum), "0")
}
