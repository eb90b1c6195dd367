package s3store

import (
	"context"
	"errors"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// errUnproven stops a write to a server that may ignore its condition.
var errUnproven = errors.New("the server was not checked yet")

// guard stops a write that would go to an address that is not S3's. Only the
// finished request tells where it goes, because an endpoint has many sources.
func (o *objects) guard(options *s3.Options) {
	options.APIOptions = append(options.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("lambdalock/guard", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			if r, ok := in.Request.(*smithyhttp.Request); ok && !amazons(r.URL.Hostname()) {
				return middleware.FinalizeOutput{}, middleware.Metadata{}, errUnproven
			}
			return next.HandleFinalize(ctx, in)
		}), middleware.After)
	})
}

// amazons reports whether a host is one of S3's own. Others under the same
// domains are not: a load balancer or an EC2 instance may be in front of any
// server. S3 on Outposts, and hosts of partitions that are missing here, are
// checked like any other server.
// https://docs.aws.amazon.com/general/latest/gr/s3.html
func amazons(host string) bool { return ownHosts.MatchString(host) }

var ownHosts = regexp.MustCompile(`(^|\.)s3(-fips|-accelerate|-accesspoint(-fips)?|express(-fips)?-[a-z0-9]+-[a-z0-9]+)?` +
	`(\.dualstack)?(\.[a-z0-9-]+)?(\.vpce)?\.amazonaws\.(com|com\.cn|eu)$`)

// unguarded are the same objects, written whatever the server.
type unguarded struct{ *objects }

// Put implements [objectstore.Objects].
func (u unguarded) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	return u.put(ctx, key, body, version)
}
