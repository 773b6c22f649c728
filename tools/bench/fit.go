package main

import (
	"errors"
	"math"
)

// A slope is a straight line's rise per unit of x, with its 95 % confidence interval.
type slope struct{ value, low, high float64 }

// fit is the line of least squares. The interval takes the deviations as independent; for a
// series in time, thin it first (see lowest).
func fit(x, y []float64) (slope, error) {
	n := float64(len(x))
	if len(x) < 4 || len(x) != len(y) {
		return slope{}, errors.New("a slope needs at least 4 points")
	}
	var mx, my float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	var sxx, sxy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	if sxx == 0 {
		return slope{}, errors.New("a slope needs points at different times")
	}
	b := sxy / sxx
	var rest float64
	for i := range x {
		d := y[i] - my - b*(x[i]-mx)
		rest += d * d
	}
	half := student(len(x)-2) * math.Sqrt(rest/(n-2)/sxx)
	return slope{b, b - half, b + half}, nil
}

// student is the 97.5 % quantile of Student's t, by the expansion of Cornish and Fisher: two
// digits are right from 3 degrees of freedom on, and the smaller ones err on the small side
// by 3 % at most.
func student(freedom int) float64 {
	const z = 1.959964
	v := float64(freedom)
	z3, z5, z7 := math.Pow(z, 3), math.Pow(z, 5), math.Pow(z, 7)
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}

// lowest thins a series, whose x ascends: of each stretch of width the lowest point. Between two
// garbage collections memory only rises; what it falls back to is what is kept. The last stretch,
// which may be cut short, is left out.
func lowest(x, y []float64, width float64) (tx, ty []float64) {
	from, least := 0, 0
	for i := range x {
		if x[i] >= x[from]+width {
			tx, ty = append(tx, x[least]), append(ty, y[least])
			from, least = i, i
		}
		if y[i] < y[least] {
			least = i
		}
	}
	return tx, ty
}
