#include "common/security/certificates.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace rubato {
namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

// Clocks of a job's hosts differ.
constexpr absl::Duration kClockDifference = absl::Minutes(5);
// Random, so that no two certificates of an authority have the same.
constexpr int kSerialBits = 127;

// What OpenSSL says of its last failure, which is then forgotten.
absl::Status Failed(absl::string_view action) {
  char text[256] = "no reason given";
  if (const unsigned long error = ERR_get_error(); error != 0) ERR_error_string_n(error, text, sizeof(text));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL cannot ", action, ": ", text));
}

absl::Status NotPem(absl::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat("is not ", what, " in PEM"));
}

Bio Reader(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

absl::StatusOr<Certificate> ReadCertificate(const std::string& pem) {
  Certificate certificate(PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return NotPem("a certificate");
  return certificate;
}

absl::StatusOr<Key> ReadKey(const std::string& pem) {
  // Without the callback OpenSSL would ask the terminal for the password of a key that has one.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  Key key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, no_password, nullptr));
  if (key == nullptr) return NotPem("a private key without a password");
  return key;
}

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(memory, &data);
  return std::string(data, static_cast<size_t>(bytes));
}

absl::StatusOr<KeyPair> WritePem(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("write a certificate");
  }
  return KeyPair{TextOf(certificate_text.get()), TextOf(key_text.get())};
}

bool SetSerial(X509* certificate) {
  const Number number(BN_new());
  return number != nullptr && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetTimes(X509* certificate, const Validity& validity) {
  const absl::Time end = validity.begin + validity.lifetime;
  return ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(validity.begin - kClockDifference)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(end)) != nullptr;
}

bool SetCommonName(X509* certificate, const std::string& name) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()),
                                    -1, 0) == 1;
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// All but the extensions and the signature.
absl::StatusOr<Certificate> Begin(EVP_PKEY* key, const std::string& common_name, const Validity& validity) {
  Certificate certificate(X509_new());
  constexpr long kVersion3 = 2;
  if (certificate == nullptr || X509_set_version(certificate.get(), kVersion3) != 1 || !SetSerial(certificate.get()) ||
      !SetTimes(certificate.get(), validity) || !SetCommonName(certificate.get(), common_name) ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return Failed("make a certificate");
  }
  return certificate;
}

absl::StatusOr<Key> MakeKey() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("make a key");
  return key;
}

absl::StatusOr<Identity> IdentityOf(X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  if (uris.size() == 1) return ParseIdentityUri(uris[0]);
  return absl::InvalidArgumentError(
      absl::StrCat("is not a certificate of a job's task: it names ", uris.size(), " URIs, not one"));
}

absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return Failed("read a certificate's time");
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string TimeText(absl::Time time) { return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone()); }

absl::Status CheckTimes(X509* certificate, absl::Time now, absl::Time* expires) {
  RUBATO_ASSIGN_OR_RETURN(const absl::Time begin, TimeOf(X509_get0_notBefore(certificate)));
  RUBATO_ASSIGN_OR_RETURN(*expires, TimeOf(X509_get0_notAfter(certificate)));
  if (now < begin) {
    return absl::FailedPreconditionError(
        absl::StrCat("is valid from ", TimeText(begin), " on, and it is ", TimeText(now)));
  }
  if (now >= *expires) return absl::FailedPreconditionError(absl::StrCat("has expired on ", TimeText(*expires)));
  return absl::OkStatus();
}

absl::StatusOr<Store> ReadStore(const std::string& authorities) {
  Store store(X509_STORE_new());
  const Bio reader = Reader(authorities);
  int count = 0;
  for (;; ++count) {
    const Certificate authority(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
    if (authority == nullptr) break;
    X509_STORE_add_cert(store.get(), authority.get());
  }
  ERR_clear_error();
  if (count == 0) return absl::InvalidArgumentError("the authority's is not a certificate in PEM");
  return store;
}

}  // namespace

absl::StatusOr<KeyPair> MakeAuthority(const std::string& job, const Validity& validity) {
  RUBATO_ASSIGN_OR_RETURN(const Key key, MakeKey());
  // A common name has at most 64 characters; whom it vouches for is said by the certificates.
  RUBATO_ASSIGN_OR_RETURN(const Certificate made,
                          Begin(key.get(), absl::StrCat("Rubato job ", job.substr(0, 50)), validity));
  X509* const certificate = made.get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) != 1 ||
      !AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !AddExtension(certificate, certificate, NID_subject_key_identifier, "hash") ||
      X509_sign(certificate, key.get(), EVP_sha256()) == 0) {
    return Failed("make an authority");
  }
  return WritePem(certificate, key.get());
}

absl::StatusOr<KeyPair> IssueCertificate(const KeyPair& authority, const Identity& identity, const Validity& validity) {
  RUBATO_RETURN_IF_ERROR(CheckKey(authority));
  RUBATO_ASSIGN_OR_RETURN(const Certificate issuer, ReadCertificate(authority.certificate));
  RUBATO_ASSIGN_OR_RETURN(const Key issuer_key, ReadKey(authority.key));
  RUBATO_ASSIGN_OR_RETURN(const Key key, MakeKey());
  RUBATO_ASSIGN_OR_RETURN(const Certificate made,
                          Begin(key.get(), CredentialName(identity.party, identity.index), validity));
  X509* const certificate = made.get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer.get())) != 1 ||
      !AddExtension(certificate, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(certificate, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(certificate, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(certificate, issuer.get(), NID_subject_key_identifier, "hash") ||
      !AddExtension(certificate, issuer.get(), NID_authority_key_identifier, "keyid") ||
      !AddExtension(certificate, issuer.get(), NID_subject_alt_name,
                    absl::StrCat("URI:", IdentityUri(identity), ",DNS:", kCertificateHost)) ||
      X509_sign(certificate, issuer_key.get(), EVP_sha256()) == 0) {
    return Failed("issue a certificate");
  }
  return WritePem(certificate, key.get());
}

absl::StatusOr<CertificateFacts> CheckCertificate(const std::string& certificate, const std::string& authorities,
                                                  absl::Time now) {
  RUBATO_ASSIGN_OR_RETURN(const Certificate read, ReadCertificate(certificate));
  RUBATO_ASSIGN_OR_RETURN(const Store store, ReadStore(authorities));
  CertificateFacts facts;
  RUBATO_ASSIGN_OR_RETURN(facts.identity, IdentityOf(read.get()));
  RUBATO_RETURN_IF_ERROR(CheckTimes(read.get(), now, &facts.expires));
  const StoreContext context(X509_STORE_CTX_new());
  if (context == nullptr || X509_STORE_CTX_init(context.get(), store.get(), read.get(), nullptr) != 1) {
    return Failed("check a certificate");
  }
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) == 1) return facts;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (error == X509_V_ERR_CERT_HAS_EXPIRED) {
    return absl::FailedPreconditionError("the certificate of its authority has expired");
  }
  return absl::PermissionDeniedError(
      absl::StrCat("is not vouched for by this authority: ", X509_verify_cert_error_string(error)));
}

absl::Status CheckKey(const KeyPair& pair) {
  RUBATO_ASSIGN_OR_RETURN(const Certificate certificate, ReadCertificate(pair.certificate));
  RUBATO_ASSIGN_OR_RETURN(const Key key, ReadKey(pair.key));
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return absl::OkStatus();
  ERR_clear_error();
  return absl::InvalidArgumentError("the private key is not that of the certificate");
}

}  // namespace rubato
