package main

// requests has the bugs in what happens around a handler that answers over
// HTTP, and in the keys of requests.
var requests = []mutant{
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "a server error completes the request",
		old: `return status >= http.StatusOK && status < http.StatusInternalServerError`,
		new: `return status >= http.StatusOK`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "a response that is not final completes the request",
		old: `return status >= http.StatusOK && status < http.StatusInternalServerError`,
		new: `return status >= http.StatusContinue && status < http.StatusInternalServerError`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "a client error that depends on who asks or when completes the request",
		old: `if repeatable[status] || status >= http.StatusBadRequest && hasRetryAfter(doc) {`,
		new: `if status == http.StatusTooManyRequests || status >= http.StatusBadRequest && hasRetryAfter(doc) {`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "an expired token completes the request",
		old: `	http.StatusUnauthorized: true, `,
		new: `	`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "a lock that is held inside the handler completes the request",
		old: `if repeatable[status] || status >= http.StatusBadRequest && hasRetryAfter(doc) {`,
		new: `if repeatable[status] || status >= http.StatusInternalServerError && hasRetryAfter(doc) {`,
		by:  "TestHTTPRetryAfter|TestHTTPNested",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a response type that the user defined or embedded is not one",
		old: `			h.gateway = gatewayByResult[p.Type]`,
		new: `			h.gateway = gatewayByResult[deref(result)]
			_ = p`,
		by: "TestBadRequest",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "every map is a response",
		old: ` || result.Kind() == reflect.Map || result == rawType`,
		new: ` || result == rawType`,
		by:  "TestNotOverHTTP",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a status in a result means nothing if types and payload are silent",
		old: `	h.byValue = h.gateway == eventkind.NoGateway && `,
		new: `	h.byValue = h.gateway != eventkind.NoGateway && `,
		by:  "TestHTTPByValue",
	},
	{
		file: "middleware/handlerrun.go", breaks: "F49", bug: "any number as a status makes a result a response",
		old: `status >= http.StatusContinue && status < 600`,
		new: `status != 0`,
		by:  "TestNotOverHTTP",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a status in the result for a queue is a response",
		old: `	return strings.HasPrefix(path, "github.com/aws/") || path`,
		new: `	return path`,
		by:  "TestNotOverHTTP",
	},
	{
		file: "middleware/rawhandler.go", breaks: "F49", bug: "the status that a lambda.Handler returns means nothing",
		old: `	run.judge(out)
`,
		new: ``,
		by:  "TestHTTPByValue",
	},
	{
		file: "middleware/reply.go", breaks: "P5", bug: "a response that was recognised by its status is not replayed",
		old: `	r.judge(a.result)
`,
		new: ``,
		by:  "TestHTTPByValue",
	},
	{
		file: "middleware/resume.go", breaks: "F54", bug: "a step that returns a status is not completed",
		old: `	h.byValue = false // the result is for a workflow
`,
		new: ``,
		by:  "TestResumeWithAStatus",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a status in types of the user's means nothing",
		old: `		h.gateway = eventkind.Payload2 // the result`,
		new: `		h.gateway = eventkind.NoGateway // the result`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "Respond(nil) answers a request without a status",
		old: ` && s.held.action == respond && isNull(s.held.response) {`,
		new: ` && s.held.action == respond && s.failOpen {`,
		by:  "TestWrongUseOverHTTP",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a nil map answers a request without a status",
		old: ` && string(b) == "null"`,
		new: ` && string(b) == "null" && response == nil`,
		by:  "TestWrongUseOverHTTP",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F28", bug: "halves of surrogate pairs are one key",
		old: `otherErr != nil || k != exact`,
		new: `otherErr != nil && k != exact`,
		by:  "TestHalvesOfSurrogatePairs",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F28", bug: "half of a surrogate pair is refused wherever it is",
		old: `otherErr != nil || k != exact`,
		new: `otherErr == nil || k != exact`,
		by:  "TestHalvesOfSurrogatePairs",
	},
	{
		file: "internal/event/canonical/canonical.go", breaks: "F28", bug: "a whole character outside the basic plane counts as a half",
		old: `			length = 12
`,
		new: `			length, found = 12, true
			rest = rest[:i] + "\\ue000\\ue000" + rest[i+12:]
`,
		by: "TestHalvesOfSurrogatePairs", in: "keyfuncs",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F28", bug: "a broken character names a lock",
		old: `if strings.ContainsRune(name, utf8.RuneError) {`,
		new: `if name == string(utf8.RuneError) {`,
		by:  "TestLostCharacters",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F61", bug: "callers that differ in a broken character are one",
		old: `strings.ContainsRune(k.Name+strings.Join(credentials, ""), utf8.RuneError)`,
		new: `strings.ContainsRune(k.Name, utf8.RuneError)`,
		by:  "TestLostCharacters",
	},
	{
		file: "keyfuncs/jmespath/typed.go", breaks: "F28", bug: "a broken character is found as a name",
		old: `if err != nil || other != k {`,
		new: `if err != nil && other != k {`,
		by:  "TestLostCharacters", in: "keyfuncs",
	},
	{
		file: "keyfuncs/jmespath/payload.go", breaks: "F28", bug: "the digest of a pointer stands for a large message",
		old: `	if eventkind.IsPointer(text) {`,
		new: `	if eventkind.IsPointer(text) && text == nil {`,
		by:  "TestNeighboursAreRefused", in: "keyfuncs",
	},
	{
		file: "middleware/signature.go", breaks: "F26", bug: "the refusal of a key of records names no wrapper",
		old: `	case perRecord[event] != "":`,
		new: `	case perRecord[in] != "":`,
		by:  "TestKeyOfRecordsAroundTheWholeEvent",
	},
	{
		file: "middleware/signature.go", breaks: "F26", bug: "a whole event is taken for a record with nothing in it",
		old: `		if record.IsZero() {`,
		new: `		if !record.IsValid() {`,
		by:  "TestDeliveryOfTheWholeEvent",
	},
	{
		file: "middleware/signature.go", breaks: "F26", bug: "an event with a time window is taken for a record",
		old: `			stream.SetZero()`,
		new: `			_ = stream`,
		by:  "TestDeliveryOfTheWholeEvent",
	},
	{
		file: "keyfuncs/keyerror.go", breaks: "F26", bug: "a nil key function crashes at the first event",
		old: `		if key == nil {`,
		new: `		if key == nil && i > 0 {`,
		by:  "TestNilKeyFunctions",
	},
	{
		file: "middleware/funchandler.go", breaks: "F28", bug: "with a key function of the user's, everybody who knows the key gets the answer",
		old: `			err = w.http.addCaller(ctx, &k, gateway, payload)`,
		new: `			_ = ctx`,
		by:  "TestStrangerGetsNoStoredAnswer",
	},
	{
		file: "middleware/rawhandler.go", breaks: "F28", bug: "the same around a lambda.Handler",
		old: `		err = h.http.addCaller(ctx, &k, gateway, payload)`,
		new: `		_ = ctx`,
		by:  "TestStrangerGetsNoStoredAnswer",
	},
	{
		file: "middleware/caller.go", breaks: "F28", bug: "the caller is not compared where only the result shows that it is a response",
		old: `	if gateway == eventkind.NoGateway && !h.byValue {`,
		new: `	if gateway == eventkind.NoGateway {`,
		by:  "TestStrangerWithoutGateway",
	},
	{
		file: "middleware/caller.go", breaks: "F28", bug: "of several keys only the first counts for a caller",
		old: `	for i := range keys.all {`,
		new: `	for i := range keys.all[:min(1, len(keys.all))] {`,
		by:  "TestStrangerOfSeveralKeys",
	},
	{
		file: "middleware/caller.go", breaks: "F28", bug: "credentials count in an API for anybody",
		old: `if k.Event == "" || k.Payload != "" {`,
		new: `if k.Event == "" {`,
		by:  "TestAnonymousOwnKey",
	},
	{
		file: "middleware/wrapper.go", breaks: "F26", bug: "nobody sees that a handler runs without a lock",
		old: `			w.report(ctx, lock.Observation{Outcome: OutcomeNoLock})
`,
		new: ``,
		by:  "TestErrNoLock|TestLevels",
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
		file: "keyfuncs/caller.go", breaks: "F28", bug: "what a Lambda authorizer calls claims does not count",
		old: `if _, ok := besides["claims"].(map[string]any); ok {`,
		new: `if besides["claims"] != nil {`,
		by:  "TestCallerByAnyContext",
	},
	{
		file: "middleware/options.go", breaks: "F12", bug: "a second observer replaces the first",
		old: `				before(ctx, seen)
`,
		new: ``,
		by:  "TestSeveralObservers",
	},
	{
		file: "middleware/http.go", breaks: "F35", bug: "a response that cannot be read back is replayed without a status",
		old: `members["statusCode"] != nil`,
		new: `members["statusCode"] == nil && false`,
		by:  "TestUnreadableResponse",
	},
	{
		file: "keyfuncs/envelope.go", breaks: "F28", bug: "a body is taken from an envelope that nobody opened",
		old: `if !taken.IsZero() {`,
		new: `if taken.IsValid() {`,
		by:  "TestUnopenedEnvelope",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F28", bug: "cookies of payload format 2.0 do not count",
		old: `append(values("Cookie", r.headers, r.multi), r.cookies...)`,
		new: `values("Cookie", r.headers, r.multi)`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "P5", bug: "a fresh signature of an authenticated caller is another caller",
		old: `	if r.caller != "" && !r.byFunction {
		return found, nil
	}`,
		new: ``,
		by:  "TestSameCaller",
	},
	{
		file: "keyfuncs/caller.go", breaks: "F61", bug: "everybody whom an authorizer calls user is one caller",
		old: `	return principal && !claims`,
		new: `	return principal && claims`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/httprequest.go", breaks: "F61", bug: "everybody whom an authorizer of a WebSocket API calls user is one caller",
		old: `byFunction: namesPrincipal(authorizer), `,
		new: ``,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/caller.go", breaks: "P5", bug: "the latency of an authorizer is another caller",
		old: `	delete(besides, "integrationLatency")`,
		new: `	delete(besides, "")`,
		by:  "TestSameCaller",
	},
	{
		file: "keyfuncs/httprequest.go", breaks: "F28", bug: "a client certificate does not count",
		old: `		r.certificate = keyparts.Name("certificate", cert.IssuerDN, cert.SerialNumber)`,
		new: `		r.certificate = ""`,
		by:  "TestStrangers",
	},
	{
		file: "keyfuncs/idempotencykey.go", breaks: "F28", bug: "nobody is named as the caller, and everybody gets the answer",
		old: `if err == nil && k.Name == "" {`,
		new: `if err != nil && k.Name == "" {`,
		by:  "TestHeaderKey",
	},
	{
		file: "internal/event/shape/shape.go", breaks: "F26", bug: "an embedded request is not found",
		old: `f.Anonymous && f.Tag.Get("json") == ""`,
		new: `f.Anonymous && f.Tag.Get("json") != ""`,
		by:  "TestRequestIn",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F37", bug: "EventFrom drops the fingerprint of a request",
		old: `, cmp.Or(k.Payload, other.Payload)
		if err`,
		new: `, k.Payload
		if err`,
		by: "TestEventFromKeepsThePayload",
	},
}
