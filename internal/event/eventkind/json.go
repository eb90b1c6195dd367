package eventkind

import "context"

type jsonKey struct{}

// WithJSON tells the key function of an S3 event that its JSON was looked at:
// what is not from S3 was refused by [NoS3Records]. carried says that a message
// carried the event.
func WithJSON(ctx context.Context, carried bool) context.Context {
	return context.WithValue(ctx, jsonKey{}, carried)
}

// HasJSON reports whether ctx comes from [WithJSON], and with what.
func HasJSON(ctx context.Context) (has, carried bool) {
	carried, has = ctx.Value(jsonKey{}).(bool)
	return has, carried
}
