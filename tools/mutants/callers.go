package main

// callers has the bugs in who sent a request, and the key that it carries.
var callers = []mutant{
	{
		file: "keyfuncs/idempotencykey.go", breaks: "F28", bug: "two callers share their idempotency keys",
		old: `keyparts.Once("http", key, r.api.value, r.stage, by.Name)`,
		new: `keyparts.Once("http", key, r.api.value, r.stage)`,
		by:  "TestIdempotencyKeyTellsApart|TestCallers",
	},
	{
		file: "keyfuncs/idempotencykey.go", breaks: "F37", bug: "another body under one idempotency key is taken for a retry",
		old: `r.query, r.contentDigest(text), `,
		new: `r.query, r.contentDigest(text[:0]), `,
		by:  "TestIdempotencyKeyFingerprint",
	},
	{
		file: "keyfuncs/idempotencykey.go", breaks: "F27", bug: "values that are not UTF-8 make one idempotency key",
		old: `unicode.IsControl(r) || r == utf8.RuneError`,
		new: `unicode.IsControl(r) && r != utf8.RuneError`,
		by:  "TestIdempotencyKeyHeader|TestIdempotencyKeyErrors",
	},
	{
		file: "keyfuncs/idempotencykey.go", breaks: "F28", bug: "nobody is named as the caller, and everybody gets the answer",
		old: `if err == nil && k.Name == "" {`,
		new: `if err != nil && k.Name == "" {`,
		by:  "TestHeaderKey",
	},
	{
		file: "keyfuncs/httprequest.go", breaks: "F28", bug: "behind an HTTP API a function typed for a Function URL takes all callers for one",
		old: `c.DomainName != "" && !strings`,
		new: `c.DomainName == "" && !strings`,
		by:  "TestIdempotencyKeyErrors",
	},
	{
		file: "keyfuncs/httprequest.go", breaks: "F61", bug: "everybody whom an authorizer of a WebSocket API calls user is one caller",
		old: `byFunction: namesPrincipal(authorizer), `,
		new: ``,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/httprequest.go", breaks: "F28", bug: "a client certificate does not count",
		old: `		r.besides = []string{certificate(cert.IssuerDN, cert.SerialNumber)}`,
		new: `		r.besides = nil`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F28", bug: "a token without a subject counts as nobody",
		old: `	if r.callerErr != nil {
`,
		new: `	if false {
`,
		by: "TestIdempotencyKeyErrors",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F28", bug: "users of two issuers are one caller",
		old: `return iss + " " + sub, nil`,
		new: `return " " + sub, nil`,
		by:  "TestCallers|TestIdempotencyKeyTellsApart",
	},
	{
		file: "keyfuncs/caller.go", breaks: "P5", bug: "a role's session makes a retry another request",
		old: `		id, _, _ = strings.Cut(id, ":")
`,
		new: `		id, _, _ = strings.Cut(id, "#")
`,
		by: "TestCallers|TestIdempotencyKeyKnowsTheSameRequest",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F61", bug: "callers that differ in a broken character are one",
		old: `strings.ContainsRune(k.Name+strings.Join(credentials, ""), utf8.RuneError)`,
		new: `strings.ContainsRune(k.Name, utf8.RuneError)`,
		by:  "TestLostCharacters",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F28", bug: "a stranger gets the stored answer",
		old: `if err == nil && len(credentials) > 0 {`,
		new: `if err == nil && len(credentials) > 99 {`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F28", bug: "what a Lambda authorizer returned does not count",
		old: `	if len(r.authorizer) > 0 {`,
		new: `	if len(r.authorizer) > 99 {`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F61", bug: "the API key that a Lambda authorizer returned does not count",
		old: `	if id.APIKey != "" {`,
		new: `	if id.APIKey == "" {`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F28", bug: "what a Lambda authorizer calls claims does not count",
		old: `if _, ok := besides["claims"].(map[string]any); ok {`,
		new: `if besides["claims"] != nil {`,
		by:  "TestCallerByAnyContext",
	},
	{
		file: "keyfuncs/cookies.go", breaks: "F28", bug: "cookies of payload format 2.0 do not count",
		old: `append(values("Cookie", r.headers, r.multi), r.cookies...)`,
		new: `values("Cookie", r.headers, r.multi)`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "P5", bug: "a fresh signature of an authenticated caller is another caller",
		old: `		names = names[1:] // a retry has another signature`,
		new: ``,
		by:  "TestSameCaller",
	},
	{
		file: "keyfuncs/caller.go", breaks: "P5", bug: "a fresh token of an authenticated caller is another caller",
		old: `	if r.caller != "" && !r.maybeOfMany() {
		return found, nil
	}`,
		new: ``,
		by:  "TestSameCaller",
	},
	{
		file: "keyfuncs/httprequest.go", breaks: "F61", bug: "everybody for whom CloudFront signs is one caller",
		old: `caller: caller, bySignature: caller != "", `,
		new: `caller: caller, `,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F61", bug: "everybody for whom a proxy signs is one caller of a REST API",
		old: `	return id.Caller != "" && id.CognitoIdentityID == ""`,
		new: `	return false`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F61", bug: "everybody whom an authorizer calls user is one caller",
		old: `	return principal && !claims`,
		new: `	return principal && claims`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "P5", bug: "the latency of an authorizer is another caller",
		old: `	delete(besides, "integrationLatency")`,
		new: `	delete(besides, "")`,
		by:  "TestSameCaller",
	},
	{
		file: "keyfuncs/httprequest.go", breaks: "F61", bug: "everybody who sends a message to a WebSocket API is one caller",
		old: `keyparts.Name("connection", c.ConnectionID)`,
		new: `keyparts.Name("connection", c.APIID)`,
		by:  "TestCallerOfAMessage",
	},
	{
		file: "middleware/caller.go", breaks: "F61", bug: "the connection of a message does not count in a handler of bytes",
		old: `callerAs[events.APIGatewayWebsocketProxyRequest]}`,
		new: `callerAs[events.APIGatewayProxyRequest]}`,
		by:  "TestStrangerSendsAMessage",
	},
	{
		file: "middleware/caller.go", breaks: "F28", bug: "the caller is not compared where only the result shows that it is a response",
		old: `	if gateway == eventkind.NoGateway && !h.byValue {`,
		new: `	if gateway == eventkind.NoGateway {`,
		by:  "TestStrangerWithoutGateway",
	},
	{
		file: "middleware/withlocks.go", breaks: "F28", bug: "of several keys only the first counts for a caller",
		old: `	for i := range s.all {
		each`,
		new: `	for i := range s.all[:min(1, len(s.all))] {
		each`,
		by: "TestStrangerOfSeveralKeys",
	},
	{
		file: "middleware/caller.go", breaks: "F28", bug: "credentials count in an API for anybody",
		old: `		case k.Payload == "":`,
		new: `		case true:`,
		by:  "TestAnonymousOwnKey",
	},
}
