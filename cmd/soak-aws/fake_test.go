package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A fakeAWS responds to the requests of soak-aws in the formats of AWS. startAWS sets environment variables so that the
// real AWS CLI sends its requests to the fake.
type fakeAWS struct {
	mu                sync.Mutex
	parameters        map[string]string
	parameterRequests int                          // number of requests for parameters
	beforeParameters  func(int, map[string]string) // called before each response with parameters
	tagResponses      [][]string                   // successive responses of the tagging API; the last one is repeated
	hosts             []string
	owner             string                    // tag Owner of the hosts
	launched          time.Time                 // launch time of the hosts
	otherTypes        []string                  // types of hosts without a tag
	schedules         map[string]map[string]any // by name
	buckets           []string
	objects           map[string]time.Time // BUCKET/KEY
	denied            bool
	lostResponses     int      // number of requests whose connection is closed without a response
	sessions          []string // requests of StartSession

	arn          string   // ARN of the caller
	quota        float64  // number of vCPUs
	dryRun       string   // code of the response to a dry run
	dryRuns      []string // actions of dry runs, with their tags
	deniedAction string   // action that IAM denies
	key          string   // KMS key of sessions
}

func startAWS(t *testing.T) *fakeAWS {
	useCommandLine(t)
	f := &fakeAWS{parameters: map[string]string{}, objects: map[string]time.Time{}, arn: "arn:aws:sts::123456789012:assumed-role/dev/me", quota: 5, dryRun: "DryRunOperation"}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	for _, name := range []string{"AWS_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"} { // an empty variable counts as set
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	return f
}

func (f *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	_, target, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch action := r.FormValue("Action"); {
	case f.lostResponses > 0 && target != "":
		f.lostResponses--
		panic(http.ErrAbortHandler)
	case action == "GetCallerIdentity":
		fmt.Fprintf(w, `<R><GetCallerIdentityResult><Arn>%s</Arn><Account>123456789012</Account></GetCallerIdentityResult></R>`, f.arn)
	case f.denied && target != "":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type":"AccessDeniedException","message":"not allowed"}`)
	case action != "":
		f.serveQuery(w, r, action)
	case target != "":
		f.serveTarget(w, target, body)
	case strings.HasPrefix(r.URL.Path, "/schedules"):
		f.serveSchedules(w, r, body)
	default:
		f.serveBuckets(w, r)
	}
}

// respondError responds with an error of the query protocol of EC2.
func respondError(w http.ResponseWriter, code string) {
	w.WriteHeader(http.StatusPreconditionFailed)
	fmt.Fprintf(w, `<Response><Errors><Error><Code>%s</Code><Message>the message of AWS</Message></Error></Errors></Response>`, code)
}

// serveQuery serves EC2 and IAM.
func (f *fakeAWS) serveQuery(w http.ResponseWriter, r *http.Request, action string) {
	switch {
	case r.FormValue("DryRun") == "true":
		f.dryRuns = append(f.dryRuns, action+" "+r.FormValue("TagSpecification.1.ResourceType")+" "+r.FormValue("TagSpecification.1.Tag.1.Key")+"="+r.FormValue("TagSpecification.1.Tag.1.Value"))
		respondError(w, f.dryRun)
	case action == "TerminateInstances":
		f.hosts = slices.DeleteFunc(f.hosts, func(id string) bool { return id == r.FormValue("InstanceId.1") || id == r.FormValue("InstanceId.2") })
		fmt.Fprint(w, `<R/>`)
	case action == "DescribeInstances":
		item := func(id, kind, tags string) {
			kind, isStopped := strings.CutPrefix(kind, "stopped ")
			state := map[bool]string{false: "running", true: "stopped"}[isStopped]
			fmt.Fprintf(w, `<item><instancesSet><item><instanceId>%s</instanceId><instanceType>%s</instanceType><launchTime>%s</launchTime><instanceState><name>%s</name></instanceState>`+
				`<cpuOptions><coreCount>1</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions><tagSet>%s</tagSet></item></instancesSet></item>`,
				id, kind, f.launched.UTC().Format("2006-01-02T15:04:05.000Z"), state, tags)
		}
		fmt.Fprint(w, `<R><reservationSet>`)
		for _, id := range f.hosts {
			item(id, "c5.large", `<item><key>Owner</key><value>`+f.owner+`</value></item><item><key>Run</key><value>sse-soak</value></item>`)
		}
		if r.FormValue("Filter.2.Name") == "" {
			for _, kind := range f.otherTypes {
				item("i-other", kind, "")
			}
		}
		fmt.Fprint(w, `</reservationSet></R>`)
	case action == "DescribeVolumes":
		fmt.Fprint(w, `<R><volumeSet/></R>`)
	case action == "DescribeInstanceTypes":
		fmt.Fprint(w, `<R><instanceTypeSet>`)
		for i := 1; r.FormValue(fmt.Sprintf("InstanceType.%d", i)) != ""; i++ {
			fmt.Fprintf(w, `<item><instanceType>%s</instanceType><vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo></item>`,
				r.FormValue(fmt.Sprintf("InstanceType.%d", i)))
		}
		fmt.Fprint(w, `</instanceTypeSet></R>`)
	case action == "GetRole":
		fmt.Fprintf(w, `<R><GetRoleResult><Role><Arn>arn:aws:iam::123456789012:role/path/%s</Arn></Role></GetRoleResult></R>`, r.FormValue("RoleName"))
	case action == "SimulatePrincipalPolicy":
		fmt.Fprint(w, `<R><SimulatePrincipalPolicyResult><EvaluationResults>`)
		for i := 1; r.FormValue(fmt.Sprintf("ActionNames.member.%d", i)) != ""; i++ {
			name, decision := r.FormValue(fmt.Sprintf("ActionNames.member.%d", i)), "allowed"
			if name == f.deniedAction || r.FormValue("PolicySourceArn") != "arn:aws:iam::123456789012:role/path/dev" {
				decision = "implicitDeny"
			}
			fmt.Fprintf(w, `<member><EvalActionName>%s</EvalActionName><EvalDecision>%s</EvalDecision></member>`, name, decision)
		}
		fmt.Fprint(w, `</EvaluationResults></SimulatePrincipalPolicyResult></R>`)
	default:
		respondError(w, "InvalidAction")
	}
}

// serveTarget serves the services that use JSON: Systems Manager, quotas, tags.
func (f *fakeAWS) serveTarget(w http.ResponseWriter, target string, body []byte) {
	switch target {
	case "GetParametersByPath":
		f.serveParameters(w, body)
	case "PutParameter":
		var request struct{ Name, Value string }
		_ = json.Unmarshal(body, &request)
		f.parameters[request.Name] = request.Value
		fmt.Fprint(w, `{"Version":2}`)
	case "StartSession":
		f.sessions = append(f.sessions, string(body))
		fmt.Fprint(w, `{"SessionId":"me-0123","StreamUrl":"wss://example.com","TokenValue":"token"}`)
	case "GetDocument":
		_ = json.NewEncoder(w).Encode(map[string]string{"Content": `{"inputs":{"kmsKeyId":"` + f.key + `"}}`})
	case "GetServiceQuota":
		fmt.Fprintf(w, `{"Quota":{"QuotaCode":"L-1216C47A","Value":%.1f}}`, f.quota)
	case "GetResources":
		list := []map[string]string{}
		if len(f.tagResponses) > 0 {
			for _, arn := range f.tagResponses[0] {
				list = append(list, map[string]string{"ResourceARN": arn})
			}
			if len(f.tagResponses) > 1 {
				f.tagResponses = f.tagResponses[1:]
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ResourceTagMappingList": list})
	default:
		http.Error(w, `{"__type":"UnknownOperationException"}`, http.StatusBadRequest)
	}
}

func (f *fakeAWS) serveBuckets(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(r.URL.Path, "/")
	bucket, key, _ := strings.Cut(name, "/")
	respondNotFound := func(code string) {
		w.WriteHeader(http.StatusNotFound)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, `<Error><Code>%s</Code></Error>`, code)
		}
	}
	switch {
	case r.Method == http.MethodPut:
		f.objects[name] = time.Now()
	case !slices.Contains(f.buckets, bucket):
		respondNotFound("NoSuchBucket")
	case key != "":
		respondNotFound("NoSuchKey")
	case r.URL.Query().Has("list-type"):
		fmt.Fprint(w, `<ListBucketResult>`)
		for name, at := range f.objects {
			parent, key, _ := strings.Cut(name, "/")
			if parent == bucket && strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
				fmt.Fprintf(w, `<Contents><Key>%s</Key><LastModified>%s</LastModified></Contents>`, key, at.UTC().Format("2006-01-02T15:04:05.000Z"))
			}
		}
		fmt.Fprint(w, `<KeyCount>0</KeyCount></ListBucketResult>`)
	}
}

// serveSchedules serves EventBridge Scheduler, which rejects an update without a required field or with a read-only
// field.
func (f *fakeAWS) serveSchedules(w http.ResponseWriter, r *http.Request, body []byte) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/schedules"), "/")
	switch {
	case name == "":
		list := []map[string]string{}
		for name := range f.schedules {
			list = append(list, map[string]string{"Name": name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"Schedules": list})
	case r.Method == http.MethodGet && f.schedules[name] != nil:
		_ = json.NewEncoder(w).Encode(f.schedules[name])
	case r.Method == http.MethodPut && f.schedules[name] != nil:
		var update map[string]any
		_ = json.Unmarshal(body, &update)
		delete(update, "ClientToken")
		if update["GroupName"] == nil || update["Target"] == nil || update["FlexibleTimeWindow"] == nil || update["CreationDate"] != nil {
			w.Header().Set("X-Amzn-Errortype", "ValidationException:http://internal.amazon.com/")
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		update["Name"] = name // from the path
		f.schedules[name] = update
		fmt.Fprint(w, `{"ScheduleArn":"arn"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// serveParameters responds with at most ten parameters at a time, like Systems Manager.
func (f *fakeAWS) serveParameters(w http.ResponseWriter, body []byte) {
	var request struct{ Path, NextToken string }
	_ = json.Unmarshal(body, &request)
	if request.NextToken == "" {
		f.parameterRequests++
		if f.beforeParameters != nil {
			f.beforeParameters(f.parameterRequests, f.parameters)
		}
	}
	found := []map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.parameters)) {
		if strings.HasPrefix(name, request.Path+"/") && name > request.NextToken {
			found = append(found, map[string]string{"Name": name, "Value": f.parameters[name]})
		}
	}
	next := ""
	if len(found) > 10 {
		found = found[:10]
		next = found[9]["Name"]
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"Parameters": found, "NextToken": next})
}
