package s3store

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// errUnproven stops a write to a server that might ignore its condition.
var errUnproven = errors.New("the server was not checked yet")

// guard returns an option that stops a write if trust returns an error for its
// host. It inspects the finished request, because the endpoint can be
// configured in many ways.
func guard(trust func(host string) error) func(*s3.Options) {
	return func(options *s3.Options) {
		options.APIOptions = append(options.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("lambdalock/guard", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				if r, ok := in.Request.(*smithyhttp.Request); ok {
					if err := trust(r.URL.Hostname()); err != nil {
						return middleware.FinalizeOutput{}, middleware.Metadata{}, err
					}
				}
				return next.HandleFinalize(ctx, in)
			}), middleware.After)
		})
	}
}

// trust returns nil for a host that is known to honour conditions, a
// *driver.ConfigError for one that is known not to, and otherwise errUnproven.
func (o *objects) trust(host string) error {
	for _, name := range []string{o.bucket, host} {
		if err := unfit(name); err != nil {
			return err
		}
	}
	if !amazons(host) || accessPoint(o.bucket) {
		return errUnproven
	}
	return nil
}

// Check implements [driver.Checker]: it probes the server unless it is S3. To
// learn the address, it starts a write that the guard stops.
func (o *objects) Check(ctx context.Context) error {
	if o.probe.Passed() {
		return nil
	}
	reached := errors.New("the address is known")
	var trusted error
	_, err := o.put(ctx, "~none", nil, "", guard(func(host string) error {
		trusted = o.trust(host)
		return reached
	}))
	switch {
	case !errors.Is(err, reached):
		return err
	case errors.Is(trusted, errUnproven):
		return o.probe.Run(ctx, unguarded{o})
	}
	return trusted
}

// amazons reports whether a host belongs to S3 itself. Other hosts under the
// same domains may not: any server can run behind a load balancer or on an EC2
// instance. S3 on Outposts, and partitions that are not listed here, are probed
// like any other server. So are access points, because they may belong to
// something without conditional writes, such as an Amazon FSx volume.
// https://docs.aws.amazon.com/general/latest/gr/s3.html
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-points-service-api-support.html
func amazons(host string) bool { return ownHosts.MatchString(host) && !alias.MatchString(host) }

var ownHosts = regexp.MustCompile(`(^|\.)s3(-fips|-accelerate|express(-fips)?-[a-z0-9]+-[a-z0-9]+)?` +
	`(\.dualstack)?(\.[a-z0-9-]+)?(\.vpce)?\.amazonaws\.(com|com\.cn|eu)$`)

// alias matches the alias of an access point, which replaces the bucket name in
// a host name or path.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-points-naming.html
var alias = regexp.MustCompile(`^[a-z0-9-]+(-s3alias|--ol-s3)(\.|$)`)

// accessPoint reports whether a bucket name is that of an access point. With
// another endpoint, such as that of a VPC, the host does not tell.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/privatelink-interface-endpoints.html
func accessPoint(bucket string) bool {
	return strings.HasPrefix(bucket, "arn:") || alias.MatchString(bucket)
}

// unfit returns an error for the name or host of an access point that cannot
// keep locks. An alias that ends in -ext-s3alias belongs to an Amazon FSx
// volume, which has no conditional writes. A Multi-Region Access Point routes a
// request to one of several buckets, each of which checks conditions on its
// own.
// https://docs.aws.amazon.com/fsx/latest/ONTAPGuide/access-points-for-fsxn-object-api-support.html
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/MultiRegionAccessPoints.html
func unfit(name string) error {
	const instead = ": several callers could hold a lock at the same time: pass the name of a bucket to s3store.New, or use another store"
	switch {
	case volume.MatchString(name):
		return &driver.ConfigError{Reason: "the S3 access point " + name + " belongs to a volume of Amazon FSx, which has no conditional writes" + instead}
	case multiRegion.MatchString(name):
		return &driver.ConfigError{Reason: "the S3 access point " + name + " is a Multi-Region Access Point, whose buckets each check the condition of a write by themselves" + instead}
	}
	return nil
}

var (
	volume      = regexp.MustCompile(`^[a-z0-9-]+-ext-s3alias(\.|$)`)
	multiRegion = regexp.MustCompile(`\.mrap$|(^|\.)accesspoint\.s3-global\.amazonaws\.com$`)
)

// unguarded writes objects without the guard, for the probe.
type unguarded struct{ *objects }

// Put implements [objectstore.Objects].
func (u unguarded) Put(ctx context.Context, key string, body []byte, version string) (string, error) {
	return u.put(ctx, key, body, version)
}
