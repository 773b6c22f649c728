package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
)

// A policy is deployer-policy.json.
type policy struct {
	Statement []struct {
		Sid              string
		Action, Resource any // a string or a list of them, as IAM accepts both
		Condition        map[string]map[string]any
	}
}

// listOf returns one value or several as a list.
func listOf(value any) (list []string) {
	if one, ok := value.(string); ok {
		return []string{one}
	}
	several, _ := value.([]any)
	for _, v := range several {
		text, _ := v.(string)
		list = append(list, text)
	}
	return list
}

// checkRights asks IAM which actions of the deployer's policy these credentials lack, boundaries included. Each statement is
// simulated for one resource that it covers.
func (c *cloud) checkRights(ctx context.Context, file string) finding {
	const what = "rights"
	arn := c.arn
	var p policy
	text, err := os.ReadFile(file) //nolint:gosec // G304: a file of the repository
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if session, assumed := strings.CutPrefix(arn, "arn:aws:sts::"+c.account+":assumed-role/"); err == nil && assumed {
		name, _, _ := strings.Cut(session, "/") // without the path of the role
		err = c.ask(ctx, &arn, "iam", "get-role", "--role-name", name, "--query", "Role.Arn")
	}
	var missing []string
	for _, s := range p.Statement {
		args := []string{"iam", "simulate-principal-policy", "--policy-source-arn", arn, "--query", "EvaluationResults[?EvalDecision!='allowed'].EvalActionName", "--action-names"}
		for _, action := range listOf(s.Action) {
			if !strings.Contains(action, "*") { // which the simulation does not accept
				args = append(args, action)
			}
		}
		args = append(args, "--resource-arns")
		for _, resource := range listOf(s.Resource) {
			args = append(args, example(resource, c.region, c.account))
		}
		for operator, keys := range s.Condition {
			args = append(args, "--context-entries")
			for key, values := range keys {
				value := "RunInstances" // any: the key has to be there
				if operator != "Null" {
					value = listOf(values)[0]
				}
				args = append(args, "ContextKeyName="+key+",ContextKeyType=string,ContextKeyValues="+value)
			}
		}
		var denied []string
		if err == nil {
			err = c.ask(ctx, &denied, args...)
		}
		missing = append(missing, denied...)
	}
	switch {
	case err != nil:
		return unanswered(what, err)
	case len(missing) > 0:
		return fail(what, "these credentials lack %s; %s has what they need", strings.Join(missing, ", "), file)
	}
	return ok(what, "IAM allows what %s lists", file)
}

// example returns a resource that a pattern of the policy matches.
func example(pattern, region, account string) string {
	if pattern == "*" {
		return pattern
	}
	return strings.NewReplacer("arn:aws:iam::*:", "arn:aws:iam::"+account+":", "::*:", "::"+account+":", ":*:*:", ":"+region+":"+account+":",
		":*::", ":"+region+"::", "${aws:userid}", "me", "soak*/*", "soak/end", "*", "").Replace(pattern)
}
