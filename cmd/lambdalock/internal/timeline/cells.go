package timeline

import (
	"strings"
	"unicode"
)

// clean makes s safe to print on one line: control characters, bidirectional
// overrides and invalid bytes could move the cursor or reorder the output.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.Variation_Selector, r):
			return -1 // would turn a narrow symbol into a wide one
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// wide holds the characters that fill two cells of a terminal: East Asian
// scripts and the symbols shown as emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},
		{Lo: 0x231a, Hi: 0x231b, Stride: 1},
		{Lo: 0x23e9, Hi: 0x23ec, Stride: 1},
		{Lo: 0x23f0, Hi: 0x23f3, Stride: 3},
		{Lo: 0x25fd, Hi: 0x25fe, Stride: 1},
		{Lo: 0x2614, Hi: 0x2615, Stride: 1},
		{Lo: 0x2648, Hi: 0x2653, Stride: 1},
		{Lo: 0x267f, Hi: 0x2693, Stride: 20},
		{Lo: 0x26a1, Hi: 0x26aa, Stride: 9},
		{Lo: 0x26ab, Hi: 0x26bd, Stride: 18},
		{Lo: 0x26be, Hi: 0x26c4, Stride: 6},
		{Lo: 0x26c5, Hi: 0x26ce, Stride: 9},
		{Lo: 0x26d4, Hi: 0x26ea, Stride: 22},
		{Lo: 0x26f2, Hi: 0x26f3, Stride: 1},
		{Lo: 0x26f5, Hi: 0x26fa, Stride: 5},
		{Lo: 0x26fd, Hi: 0x2705, Stride: 8},
		{Lo: 0x270a, Hi: 0x270b, Stride: 1},
		{Lo: 0x2728, Hi: 0x274c, Stride: 36},
		{Lo: 0x274e, Hi: 0x2753, Stride: 5},
		{Lo: 0x2754, Hi: 0x2755, Stride: 1},
		{Lo: 0x2757, Hi: 0x2795, Stride: 62},
		{Lo: 0x2796, Hi: 0x2797, Stride: 1},
		{Lo: 0x27b0, Hi: 0x27bf, Stride: 15},
		{Lo: 0x2b1b, Hi: 0x2b1c, Stride: 1},
		{Lo: 0x2b50, Hi: 0x2b55, Stride: 5},
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xa960, Hi: 0xa97c, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe10, Hi: 0xfe19, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff01, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x16fe0, Hi: 0x1b2ff, Stride: 1},
		{Lo: 0x1f004, Hi: 0x1f0cf, Stride: 203},
		{Lo: 0x1f18e, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f680, Hi: 0x1faff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// runeCells is the number of terminal cells r fills.
func runeCells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// cells is the number of terminal cells s fills.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

// truncate shortens s to at most n cells, with an ellipsis where it was cut.
func truncate(s string, n int) string {
	if cells(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	end, used := 0, 0
	for i, r := range s {
		if used += runeCells(r); used > n-1 {
			end = i
			break
		}
	}
	return s[:end] + "…"
}
