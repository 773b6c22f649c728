package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakeAWS answers what soak-aws asks, in AWS's own formats. The SDK is sent to it by the variables
// that AWS has for that.
type fakeAWS struct {
	mu         sync.Mutex
	parameters map[string]string
	asked      int                          // for parameters
	onAsked    func(int, map[string]string) // before each answer
	tagged     [][]string                   // answers of the tagging API, one after another; the last one stays
	hosts      []string
	launched   time.Time                 // of the hosts
	schedules  map[string]map[string]any // by name
	there      []string                  // what services still know, by its id
	objects    []string                  // of buckets: BUCKET/KEY
	denied     bool
	sessions   []string     // what StartSession was asked
	account    *fakeAccount // nil: no test reads it
}

func startAWS(t *testing.T) *fakeAWS {
	f := &fakeAWS{parameters: map[string]string{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ENDPOINT_URL_EC2": server.URL, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_REGION": "", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	return f
}

func (f *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.denied {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"__type":"AccessDeniedException","message":"not allowed"}`)
		return
	}
	switch target := r.Header.Get("X-Amz-Target"); {
	case target == "AmazonSSM.GetParameters":
		f.serveParameters(w, r)
	case target == "AmazonSSM.PutParameter":
		var asked struct{ Name, Value string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		f.parameters[asked.Name] = asked.Value
		fmt.Fprint(w, `{"Version":2}`)
	case target == "AmazonSSM.StartSession":
		asked, _ := io.ReadAll(r.Body)
		f.sessions = append(f.sessions, string(asked))
		fmt.Fprint(w, `{"SessionId":"me-0123","StreamUrl":"wss://example.com","TokenValue":"token"}`)
	case r.URL.Query().Get("Action") == "ListRoles":
		fmt.Fprint(w, `<ListRolesResponse><ListRolesResult><IsTruncated>`+fmt.Sprint(r.URL.Query().Get("Marker") == "")+`</IsTruncated><Marker>more</Marker><Roles>`)
		for _, name := range []string{"of-somebody-else", "sse-soak-stack-2026"} {
			if (r.URL.Query().Get("Marker") == "") == (name == "of-somebody-else") {
				fmt.Fprintf(w, `<member><RoleName>%s</RoleName><Arn>arn:aws:iam::123456789012:role/%s</Arn></member>`, name, name)
			}
		}
		fmt.Fprint(w, `</Roles></ListRolesResult></ListRolesResponse>`)
	case r.URL.Query().Get("Action") == "TerminateInstances":
		f.hosts = slices.DeleteFunc(f.hosts, func(id string) bool {
			return id == r.URL.Query().Get("InstanceId.1") || id == r.URL.Query().Get("InstanceId.2")
		})
		fmt.Fprint(w, `<TerminateInstancesResponse/>`)
	case f.account != nil && f.account.serve(w, r, target):
	case strings.HasPrefix(r.URL.Path, "/schedules"):
		f.serveSchedules(w, r)
	case strings.HasPrefix(target, "ResourceGroupsTaggingAPI"):
		list := []map[string]string{}
		if len(f.tagged) > 0 {
			for _, arn := range f.tagged[0] {
				list = append(list, map[string]string{"ResourceARN": arn})
			}
			if len(f.tagged) > 1 {
				f.tagged = f.tagged[1:]
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ResourceTagMappingList": list})
	case r.URL.Query().Get("Action") == "DescribeInstances":
		fmt.Fprint(w, `<DescribeInstancesResponse><reservationSet>`)
		for _, id := range f.hosts {
			fmt.Fprintf(w, `<item><instancesSet><item><instanceId>%s</instanceId><launchTime>%s</launchTime></item></instancesSet></item>`, id, f.launched.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
		fmt.Fprint(w, `</reservationSet></DescribeInstancesResponse>`)
	case r.URL.Query().Get("Action") == "DescribeVolumes":
		fmt.Fprint(w, `<DescribeVolumesResponse><volumeSet/></DescribeVolumesResponse>`)
	case strings.HasPrefix(r.URL.Query().Get("Action"), "Describe"): // of EC2, one thing by its id
		for name, id := range r.URL.Query() {
			if strings.HasSuffix(name, "Id.1") && !slices.Contains(f.there, id[0]) {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `<Response><Errors><Error><Code>Invalid%s.NotFound</Code><Message>The ID '%s' does not exist</Message></Error></Errors></Response>`, strings.TrimSuffix(name, ".1"), id[0])
				return
			}
		}
		fmt.Fprint(w, `<DescribeResponse/>`)
	case r.Method == http.MethodHead: // a bucket
		if !slices.Contains(f.there, strings.Trim(r.URL.Path, "/")) {
			w.WriteHeader(http.StatusNotFound)
		}
	case r.URL.Query().Has("list-type"): // of a bucket
		fmt.Fprint(w, `<ListBucketResult>`)
		for _, o := range f.objects {
			bucket, key, _ := strings.Cut(o, "/")
			if bucket == strings.Trim(r.URL.Path, "/") && strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
				fmt.Fprintf(w, `<Contents><Key>%s</Key></Contents>`, key)
			}
		}
		fmt.Fprint(w, `<KeyCount>0</KeyCount></ListBucketResult>`)
	case r.Method == http.MethodPut: // an object
		f.objects = append(f.objects, strings.Trim(r.URL.Path, "/"))
	default:
		http.Error(w, "unknown question", http.StatusBadRequest)
	}
}

// serveSchedules is EventBridge Scheduler, which refuses an update that lacks what it wants or has what only it says.
func (f *fakeAWS) serveSchedules(w http.ResponseWriter, r *http.Request) {
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
		_ = json.NewDecoder(r.Body).Decode(&update)
		if update["GroupName"] == nil || update["Target"] == nil || update["FlexibleTimeWindow"] == nil || update["CreationDate"] != nil {
			w.Header().Set("X-Amzn-Errortype", "ValidationException:http://internal.amazon.com/")
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		f.schedules[name] = update
		fmt.Fprint(w, `{"ScheduleArn":"arn"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *fakeAWS) serveParameters(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Names []string }
	_ = json.NewDecoder(r.Body).Decode(&asked)
	f.asked++
	if f.onAsked != nil {
		f.onAsked(f.asked, f.parameters)
	}
	found, missing := []map[string]string{}, []string{}
	for _, name := range asked.Names {
		if value, ok := f.parameters[name]; ok {
			found = append(found, map[string]string{"Name": name, "Value": value})
		} else {
			missing = append(missing, name)
		}
	}
	if len(asked.Names) > maxParameters {
		http.Error(w, `{"__type":"ValidationException"}`, http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"Parameters": found, "InvalidParameters": missing})
}
