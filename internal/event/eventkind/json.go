package eventkind

import "context"

type jsonKey struct{}

// WithJSON tells the key function of an S3 event that its JSON was looked at:
// what is not from S3 was refused by [NoS3Records].
func WithJSON(ctx context.Context) context.Context {
	return context.WithValue(ctx, jsonKey{}, true)
}

// HasJSON reports whether ctx comes from [WithJSON].
func HasJSON(ctx context.Context) bool { return ctx.Value(jsonKey{}) != nil }
