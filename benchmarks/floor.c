/* The floor: a dense network trained by full-batch Adam in a plain C loop, without any framework.
   Compiled with REAL=float or double; activations by number: 0 tanh, 1 sigmoid, 2 softplus, 3 x tanh x, 4 x^2 tanh x. */
#include <tgmath.h>
#include <stdlib.h>
#include <string.h>

#ifndef REAL
#define REAL double
#endif

static void activate(int kind, int count, const REAL *restrict z, REAL *restrict h, REAL *restrict d) {
    switch (kind) {
    case 0: for (int j = 0; j < count; j++) { REAL t = tanh(z[j]); h[j] = t; d[j] = 1 - t * t; } break;
    case 1: for (int j = 0; j < count; j++) { REAL s = 1 / (1 + exp(-z[j])); h[j] = s; d[j] = s * (1 - s); } break;
    case 2: for (int j = 0; j < count; j++) { REAL e = exp(z[j]); h[j] = log(1 + e); d[j] = e / (1 + e); } break;
    case 3: for (int j = 0; j < count; j++) { REAL x = z[j], t = tanh(x); h[j] = x * t; d[j] = t + x * (1 - t * t); } break;
    default: for (int j = 0; j < count; j++) { REAL x = z[j], t = tanh(x); h[j] = x * x * t; d[j] = 2 * x * t + x * x * (1 - t * t); }
    }
}

/* parameters, layer after layer: weight (out x in, row after row), then bias (out); the output layer has no bias and one output */
void train(int layers, const int *widths, const int *kinds, int residual, int n, const REAL *x, const REAL *y,
           REAL *parameters, int steps, REAL rate) {
    int total = 0, most = 0;
    for (int l = 0; l < layers; l++) total += widths[l + 1] * (widths[l] + 1);
    total += widths[layers];
    for (int l = 0; l <= layers; l++) most = widths[l] > most ? widths[l] : most;
    REAL *g = calloc(total, sizeof(REAL)), *m = calloc(total, sizeof(REAL)), *v = calloc(total, sizeof(REAL));
    REAL **h = malloc((layers + 1) * sizeof(REAL *)), **d = malloc((layers + 1) * sizeof(REAL *));
    for (int l = 0; l <= layers; l++) { h[l] = malloc(sizeof(REAL) * n * most); d[l] = malloc(sizeof(REAL) * n * most); }
    REAL *z = malloc(sizeof(REAL) * n * most), *back = malloc(sizeof(REAL) * n * most), *next = malloc(sizeof(REAL) * n * most);
    REAL *f = malloc(sizeof(REAL) * n), p1 = 1, p2 = 1;
    for (int i = 0; i < n; i++) for (int k = 0; k < widths[0]; k++) h[0][k * n + i] = x[i * widths[0] + k];
    for (int step = 0; step < steps; step++) {
        const REAL *w = parameters;
        for (int l = 0; l < layers; l++) {
            int in = widths[l], out = widths[l + 1];
            const REAL *bias = w + out * in;
            for (int i = 0; i < out; i++) {
                REAL *restrict row = z + i * n;
                for (int j = 0; j < n; j++) row[j] = bias[i];
                for (int k = 0; k < in; k++) { REAL c = w[i * in + k]; const REAL *restrict s = h[l] + k * n; for (int j = 0; j < n; j++) row[j] += c * s[j]; }
            }
            activate(kinds[l], out * n, z, h[l + 1], d[l + 1]);
            if (residual && l) for (int j = 0; j < out * n; j++) h[l + 1][j] += h[l][j];
            w += out * (in + 1);
        }
        int last = widths[layers];
        for (int j = 0; j < n; j++) f[j] = -y[j];
        for (int k = 0; k < last; k++) { REAL c = w[k]; const REAL *restrict s = h[layers] + k * n; for (int j = 0; j < n; j++) f[j] += c * s[j]; }
        for (int j = 0; j < n; j++) f[j] /= n;
        REAL *gw = g + (w - parameters);
        for (int k = 0; k < last; k++) {
            REAL sum = 0; const REAL *restrict s = h[layers] + k * n;
            for (int j = 0; j < n; j++) { sum += s[j] * f[j]; back[k * n + j] = w[k] * f[j]; }
            gw[k] = sum;
        }
        for (int l = layers - 1; l >= 0; l--) {
            int in = widths[l], out = widths[l + 1];
            w -= out * (in + 1);
            gw = g + (w - parameters);
            if (l) { if (residual) memcpy(next, back, sizeof(REAL) * n * in); else memset(next, 0, sizeof(REAL) * n * in); }
            for (int i = 0; i < out; i++) {
                REAL *restrict row = back + i * n; const REAL *restrict slope = d[l + 1] + i * n; REAL sum = 0;
                for (int j = 0; j < n; j++) { row[j] *= slope[j]; sum += row[j]; }
                gw[out * in + i] = sum;
                for (int k = 0; k < in; k++) {
                    const REAL *restrict s = h[l] + k * n; REAL dot = 0;
                    for (int j = 0; j < n; j++) dot += row[j] * s[j];
                    gw[i * in + k] = dot;
                    if (l) { REAL c = w[i * in + k]; REAL *restrict t = next + k * n; for (int j = 0; j < n; j++) t[j] += c * row[j]; }
                }
            }
            REAL *swap = back; back = next; next = swap;
        }
        p1 *= (REAL)0.9; p2 *= (REAL)0.999;
        REAL c1 = rate / (1 - p1), c2 = 1 / (1 - p2);
        for (int k = 0; k < total; k++) {
            m[k] = (REAL)0.9 * m[k] + (REAL)0.1 * g[k];
            v[k] = (REAL)0.999 * v[k] + (REAL)0.001 * g[k] * g[k];
            parameters[k] -= c1 * m[k] / (sqrt(v[k] * c2) + (REAL)1e-8);
        }
    }
    for (int l = 0; l <= layers; l++) { free(h[l]); free(d[l]); }
    free(h); free(d); free(g); free(m); free(v); free(z); free(back); free(next); free(f);
}
