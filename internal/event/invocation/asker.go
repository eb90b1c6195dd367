package invocation

import "context"

// Asker is what the key functions of an invocation found out about who sent the
// request.
type Asker struct{ known, nobody bool }

type askerKey struct{}

// WithAsker returns a context in which key functions report to a.
func WithAsker(ctx context.Context, a *Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// Identified reports whether anything by which two senders of a request can be
// told apart is in its key.
func Identified(ctx context.Context, known bool) {
	if a, ok := ctx.Value(askerKey{}).(*Asker); ok {
		a.known = a.known || known
		a.nobody = a.nobody || !known
	}
}

// Known reports whether every key function that looked for the sender found
// one, and whether any has looked.
func (a *Asker) Known() (known, looked bool) { return !a.nobody, a.known || a.nobody }
