<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

/** One row of wp_options: what the settings page saves. */
const OPTION = 'reelgate';

/** The row of the secret that tags are made with. */
const TAG_SECRET = 'reelgate_tag_secret';

const DEFAULTS = array(
	'server'    => '',
	'secret'    => '',
	'watermark' => '[{"type":"rtext","text":"{name}","alpha":"0.6","color":"0xFFFFFF","size":"15","interval":"5000"}]',
	'width'     => 1280,
	'height'    => 'auto',
	'speeds'    => '',
	'take_over' => false,
);

/** Constants of wp-config.php override what is saved. */
function options() {
	$saved   = get_option( OPTION, array() );
	$options = array_merge( DEFAULTS, is_array( $saved ) ? $saved : array() );
	if ( is_constant( 'server' ) ) {
		$options['server'] = constant( 'REELGATE_SERVER' );
	}
	if ( is_constant( 'secret' ) ) {
		$options['secret'] = constant( 'REELGATE_API_SECRET' );
	}
	return $options;
}

/**
 * Whether wp-config.php decides this. Its secret counts together with its server alone: in a network of sites, the administrator of one
 * would enter a server of their own, and get it.
 */
function is_constant( $name ) {
	return defined( 'REELGATE_SERVER' ) && ( 'server' === $name || ( 'secret' === $name && defined( 'REELGATE_API_SECRET' ) ) );
}

/** The server's address, without what is often copied behind it; an empty text for one that is no address of a server. */
function clean_server( $address ) {
	$address = rtrim( trim( (string) $address ), '/' );
	$address = preg_replace( '~/(?:api|v2|console)$~D', '', $address );
	$parts   = wp_parse_url( $address );
	if ( ! $parts || empty( $parts['host'] ) || isset( $parts['user'] ) || isset( $parts['query'] ) || isset( $parts['fragment'] ) ) {
		return '';
	}
	return in_array( $parts['scheme'] ?? '', array( 'https', 'http' ), true ) ? $address : '';
}

/** 32 random bytes, made when they are first needed; they never leave this site. */
function tag_secret() {
	$secret = get_option( TAG_SECRET, '' );
	if ( is_string( $secret ) && strlen( $secret ) === 64 ) {
		return $secret;
	}
	// Of two requests that make one concurrently the first wins: both read what is stored.
	add_option( TAG_SECRET, bin2hex( random_bytes( 32 ) ), '', 'no' );
	wp_cache_delete( TAG_SECRET, 'options' );
	return get_option( TAG_SECRET );
}
