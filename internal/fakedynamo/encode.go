package fakedynamo

import (
	"encoding/base64"
	"strconv"
)

// append writes the item's JSON.
func (it item) append(dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	for name, v := range it {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendString(dst, name)
		dst = append(dst, ':')
		dst = v.append(dst)
	}
	return append(dst, '}')
}

func (v *value) append(dst []byte) []byte {
	dst = append(dst, `{"`...)
	dst = append(dst, v.kind...)
	dst = append(dst, `":`...)
	switch v.kind {
	case "B":
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, []byte(v.text))
		dst = append(dst, '"')
	case "BOOL":
		dst = strconv.AppendBool(dst, v.flag)
	case "NULL":
		dst = append(dst, "true"...)
	case "M":
		dst = item(v.m).append(dst)
	case "L":
		dst = append(dst, '[')
		for i, a := range v.l {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = a.append(dst)
		}
		dst = append(dst, ']')
	default:
		dst = appendString(dst, v.text)
	}
	return append(dst, '}')
}

// appendString writes a JSON string. Strings come out of a JSON decoder, so
// they are valid UTF-8 and only a few characters need escaping.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// raw returns a copy of the item in the form of the protocol's JSON.
func (it item) raw() map[string]any {
	out := make(map[string]any, len(it))
	for name, v := range it {
		out[name] = v.raw()
	}
	return out
}

func (v *value) raw() map[string]any {
	var content any = v.text
	switch v.kind {
	case "B":
		content = base64.StdEncoding.EncodeToString([]byte(v.text))
	case "BOOL":
		content = v.flag
	case "NULL":
		content = true
	case "M":
		content = item(v.m).raw()
	case "L":
		list := make([]any, len(v.l))
		for i, a := range v.l {
			list[i] = a.raw()
		}
		content = list
	}
	return map[string]any{v.kind: content}
}
